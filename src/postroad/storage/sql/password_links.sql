-- name: insert
-- A new link.
INSERT INTO password_links (token_hash, account_id, user_id, expires_at, by_operator, is_recovery)
VALUES ($1, $2, $3, $4, $5, $6);

-- name: by_hash
-- The link of a token.
SELECT token_hash, account_id, user_id, expires_at, by_operator, is_recovery FROM password_links WHERE token_hash = $1;

-- name: consume
-- The link of a token, which is deleted.
DELETE FROM password_links WHERE token_hash = $1
RETURNING token_hash, account_id, user_id, expires_at, by_operator, is_recovery;

-- name: remove_of_user
-- Delete the links of a user.
DELETE FROM password_links WHERE user_id = $1;

-- name: sweep
-- Delete expired links, up to a limit.
DELETE FROM password_links WHERE token_hash IN (
    SELECT token_hash FROM password_links WHERE expires_at <= $1 LIMIT $2);
