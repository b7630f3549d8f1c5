-- name: find
-- One address of an account, if it is on the list.
SELECT account_id, email_key, source, reason, smtp_code, message_id, created_at FROM suppressions
WHERE account_id = $1 AND email_key = $2;

-- name: add
-- Put addresses onto the list; the first reason stays, and what was there already is not returned.
INSERT INTO suppressions (account_id, email_key, source, reason, smtp_code, message_id, created_at)
VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (account_id, email_key) DO NOTHING
RETURNING account_id, email_key;

-- name: remove
-- Take an address off the list.
DELETE FROM suppressions WHERE account_id = $1 AND email_key = $2;

-- name: of_account
-- An account's list in the order of the addresses, after one of them; NULL filters nothing.
SELECT account_id, email_key, source, reason, smtp_code, message_id, created_at FROM suppressions
WHERE account_id = $1 AND email_key > $2 AND (CAST($4 AS TEXT) IS NULL OR source = $4) ORDER BY email_key LIMIT $3;
