-- name: insert
-- Entries of the ledger.
INSERT INTO ledger (id, account_id, kind, available, reserved, message_id, note, created_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8);

-- name: page
-- An account's entries, newest first, before a cursor.
SELECT id, account_id, kind, available, reserved, message_id, note, created_at
FROM ledger WHERE account_id = $1 AND id < $2 ORDER BY id DESC LIMIT $3;

-- name: page_from
-- An account's entries, oldest first, after a cursor.
SELECT id, account_id, kind, available, reserved, message_id, note, created_at
FROM ledger WHERE account_id = $1 AND id > $2 ORDER BY id LIMIT $3;
