-- part: session
SELECT id, login_id, user_id, account_id, kind, name, device, network, methods, created_at, last_used_at, expires_at,
    confirmed_at, parent_id
FROM sessions

-- name: insert
-- A new session.
INSERT INTO sessions (id, login_id, user_id, account_id, kind, name, device, network, methods, created_at, last_used_at,
    expires_at, confirmed_at, parent_id)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, CAST($14 AS TEXT));

-- name: by_id
-- One session.
-- include: session
WHERE id = $1;

-- name: of_user
-- The sessions of a user that have not expired, the latest used first.
-- include: session
WHERE user_id = $1 AND expires_at > $2 ORDER BY last_used_at DESC, id DESC LIMIT $3;

-- name: of_login
-- The same of a login, in all its accounts.
-- include: session
WHERE login_id = $1 AND expires_at > $2 ORDER BY last_used_at DESC, id DESC LIMIT $3;

-- name: touch
-- The time of the last use.
UPDATE sessions SET last_used_at = $2 WHERE id = $1 AND last_used_at < $2;

-- name: confirm
-- The person has proved again who they are.
UPDATE sessions SET confirmed_at = $2, methods = $3 WHERE id = $1;

-- name: remove
-- Delete a session and the tokens that were made in it.
DELETE FROM sessions WHERE id = $1 OR parent_id = $1;

-- name: adopt
-- Tokens that were made in a session continue with the one that it becomes.
UPDATE sessions SET parent_id = $2 WHERE parent_id = $1;

-- name: remove_of_user
-- Delete the sessions of a user.
DELETE FROM sessions WHERE user_id = $1;

-- name: remove_others
-- Delete the sessions of a login, in all its accounts, but one.
DELETE FROM sessions WHERE login_id = $1 AND id <> $2;

-- name: remove_of_login
-- Delete the sessions of a login, in all its accounts.
DELETE FROM sessions WHERE login_id = $1;

-- name: sweep
-- Delete sessions that have expired, up to a limit.
DELETE FROM sessions WHERE id IN (SELECT id FROM sessions WHERE expires_at <= $1 LIMIT $2);
