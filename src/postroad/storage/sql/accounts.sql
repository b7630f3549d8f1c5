-- name: insert
-- A new account without credits.
INSERT INTO accounts (id, name, status, suspended_reason, available, reserved, created_at)
VALUES ($1, $2, 'active', NULL, 0, 0, $3);

-- name: by_id
-- One account.
SELECT id, name, status, suspended_reason, available, reserved, created_at, suspended_by, suspended_at
FROM accounts WHERE id = $1;

-- name: by_name
-- Accounts with one name, oldest first; a rare request of operators, so without an index.
SELECT id, name, status, suspended_reason, available, reserved, created_at, suspended_by, suspended_at
FROM accounts WHERE name = $1 ORDER BY id LIMIT $2;

-- name: page
-- Accounts in order of creation, after a cursor.
SELECT id, name, status, suspended_reason, available, reserved, created_at, suspended_by, suspended_at
FROM accounts WHERE id > $1 ORDER BY id LIMIT $2;

-- name: suspend
-- Suspend an account.
UPDATE accounts SET status = 'suspended', suspended_reason = $2, suspended_by = $3, suspended_at = $4 WHERE id = $1;

-- name: resume
-- Let an account send again.
UPDATE accounts SET status = 'active', suspended_reason = NULL, suspended_by = NULL, suspended_at = NULL WHERE id = $1;

-- name: cooled
-- Accounts that the bounce guard suspended up to a time, oldest first.
SELECT id FROM accounts WHERE suspended_by = 'bounce_guard' AND suspended_at <= $1 ORDER BY suspended_at LIMIT $2;

-- name: lock
-- The accounts of a batch, locked until its end: SQLite's write transaction locks everything.
SELECT id, name, status, suspended_reason, available, reserved, created_at, suspended_by, suspended_at
FROM accounts WHERE id = $1;

-- name: move_credits
-- Add to both balances; a CHECK keeps them from going below zero.
UPDATE accounts SET available = available + $2, reserved = reserved + $3 WHERE id = $1;
