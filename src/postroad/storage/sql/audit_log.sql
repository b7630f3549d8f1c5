-- name: insert
-- A new entry.
INSERT INTO audit_log (account_id, id, actor_kind, user_id, actor, action, subject, detail, request_id, client_address,
    created_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11);

-- name: page
-- An account's entries between two cursors that are like the patterns, newest first.
SELECT account_id, id, actor_kind, user_id, actor, action, subject, detail, request_id, client_address, created_at
FROM audit_log WHERE account_id = $1 AND id < $2 AND id >= $3
    AND lower(actor) LIKE $5 ESCAPE '!' AND action LIKE $6 ESCAPE '!' AND lower(subject) LIKE $7 ESCAPE '!'
ORDER BY id DESC LIMIT $4;

-- name: floor
-- The id of the last one of so many entries, from the newest on.
SELECT id FROM audit_log WHERE account_id = $1 AND id < $2 AND id >= $3 ORDER BY id DESC LIMIT 1 OFFSET $4;

-- name: page_of_all
-- The same over all accounts and the installation, between two times too, which the index has.
SELECT account_id, id, actor_kind, user_id, actor, action, subject, detail, request_id, client_address, created_at
FROM audit_log WHERE created_at <= $1 AND created_at >= $2 AND id < $3 AND id >= $4
    AND lower(actor) LIKE $6 ESCAPE '!' AND action LIKE $7 ESCAPE '!' AND lower(subject) LIKE $8 ESCAPE '!'
ORDER BY created_at DESC, id DESC LIMIT $5;

-- name: floor_of_all
-- The id of the last one of so many entries of all accounts.
SELECT id FROM audit_log WHERE created_at <= $1 AND created_at >= $2 AND id < $3 AND id >= $4
ORDER BY created_at DESC, id DESC LIMIT 1 OFFSET $5;

-- name: sweep
-- Delete entries from before a time, up to a limit.
DELETE FROM audit_log WHERE (account_id, id) IN (
    SELECT account_id, id FROM audit_log WHERE created_at < $1 LIMIT $2);
