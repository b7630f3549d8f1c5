-- name: insert
-- A new link.
INSERT INTO password_links (token_hash, account_id, user_id, expires_at) VALUES ($1, $2, $3, $4);

-- name: by_hash
-- The link behind a token.
SELECT token_hash, account_id, user_id, expires_at FROM password_links WHERE token_hash = $1;

-- name: take
-- The link behind a token, which nobody can use any more.
DELETE FROM password_links WHERE token_hash = $1 RETURNING token_hash, account_id, user_id, expires_at;

-- name: remove_of_user
-- A person's links do not work any more.
DELETE FROM password_links WHERE user_id = $1;

-- name: sweep
-- Forget links that have expired, some at a time.
DELETE FROM password_links WHERE token_hash IN (
    SELECT token_hash FROM password_links WHERE expires_at <= $1 LIMIT $2);
