-- name: insert
-- What somebody did in an account.
INSERT INTO journal (account_id, id, actor_kind, user_id, actor, action, subject, detail, request_id, client_address,
    created_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11);

-- name: page
-- An account's entries, newest first, before a cursor.
SELECT account_id, id, actor_kind, user_id, actor, action, subject, detail, request_id, client_address, created_at
FROM journal WHERE account_id = $1 AND id < $2 ORDER BY id DESC LIMIT $3;

-- name: sweep
-- Forget entries of before a time, some at a time.
DELETE FROM journal WHERE (account_id, id) IN (
    SELECT account_id, id FROM journal WHERE created_at < $1 LIMIT $2);
