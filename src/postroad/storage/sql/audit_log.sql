-- name: insert
-- A new entry.
INSERT INTO audit_log (account_id, id, actor_kind, user_id, actor, action, subject, detail, request_id, client_address,
    created_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11);

-- name: page
-- An account's entries, newest first, before a cursor.
SELECT account_id, id, actor_kind, user_id, actor, action, subject, detail, request_id, client_address, created_at
FROM audit_log WHERE account_id = $1 AND id < $2 ORDER BY id DESC LIMIT $3;

-- name: sweep
-- Delete entries from before a time, up to a limit.
DELETE FROM audit_log WHERE (account_id, id) IN (
    SELECT account_id, id FROM audit_log WHERE created_at < $1 LIMIT $2);
