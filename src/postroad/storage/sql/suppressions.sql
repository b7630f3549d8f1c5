-- name: find
-- One address of an account, if it is on the list.
SELECT account_id, email_key, source, reason, smtp_code, message_id, created_at FROM suppressions
WHERE account_id = $1 AND email_key = $2;

-- name: add
-- Add addresses to the list; those that are on it already are neither changed nor returned.
INSERT INTO suppressions (account_id, email_key, source, reason, smtp_code, message_id, created_at)
VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (account_id, email_key) DO NOTHING
RETURNING account_id, email_key;

-- name: remove
-- Remove an address from the list.
DELETE FROM suppressions WHERE account_id = $1 AND email_key = $2;

-- name: of_account
-- An account's list by address, after a cursor; NULL matches every source.
SELECT account_id, email_key, source, reason, smtp_code, message_id, created_at FROM suppressions
WHERE account_id = $1 AND email_key > $2 AND (CAST($4 AS TEXT) IS NULL OR source = $4) ORDER BY email_key LIMIT $3;

-- name: count
-- How many addresses are on the list of an account.
SELECT COUNT(*) FROM suppressions WHERE account_id = $1;
