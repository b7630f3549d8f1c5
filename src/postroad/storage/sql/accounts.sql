-- name: insert
-- A new account without credits.
INSERT INTO accounts (id, name, status, suspended_reason, available, reserved, created_at)
VALUES ($1, $2, 'active', NULL, 0, 0, $3);

-- name: by_id
-- One account.
SELECT id, name, status, suspended_reason, available, reserved, created_at FROM accounts WHERE id = $1;

-- name: by_name
-- Accounts of one name, oldest first; for operators, who are few, so without an index.
SELECT id, name, status, suspended_reason, available, reserved, created_at
FROM accounts WHERE name = $1 ORDER BY id LIMIT $2;

-- name: page
-- Accounts in order of their making, after a cursor.
SELECT id, name, status, suspended_reason, available, reserved, created_at
FROM accounts WHERE id > $1 ORDER BY id LIMIT $2;

-- name: set_status
-- Suspend or resume.
UPDATE accounts SET status = $2, suspended_reason = $3 WHERE id = $1;

-- name: lock
-- The accounts of a batch, held until its end; SQLite's write transaction holds everything.
SELECT id, name, status, suspended_reason, available, reserved, created_at FROM accounts WHERE id = $1;

-- name: move_credits
-- Add to both balances; the table refuses to go below zero.
UPDATE accounts SET available = available + $2, reserved = reserved + $3 WHERE id = $1;
