-- name: insert
-- A new user; nothing when the email is in use.
INSERT INTO users (id, account_id, email, email_key, password_hash, role, tokens_valid_from, disabled_at, created_at,
    joined_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, NULL, $7, $8) ON CONFLICT (email_key) DO NOTHING;

-- name: by_email
-- The user with this email.
SELECT id, account_id, email, password_hash, role, tokens_valid_from, disabled_at, created_at, joined_at,
    last_login_at, time_zone, operator_since
FROM users WHERE email_key = $1;

-- name: by_id
-- One user.
SELECT id, account_id, email, password_hash, role, tokens_valid_from, disabled_at, created_at, joined_at,
    last_login_at, time_zone, operator_since
FROM users WHERE id = $1;

-- name: set_password
-- A new password invalidates all earlier tokens. `tokens_valid_from` always increases, whatever the clock says. The first
-- password sets `joined_at`.
UPDATE users SET password_hash = $2, joined_at = COALESCE(joined_at, $3),
    tokens_valid_from = CASE WHEN tokens_valid_from < $3 THEN $3 ELSE tokens_valid_from + 1 END
WHERE id = $1;

-- name: replace_password
-- The same, unless the password has changed meanwhile.
UPDATE users SET password_hash = $2,
    tokens_valid_from = CASE WHEN tokens_valid_from < $3 THEN $3 ELSE tokens_valid_from + 1 END
WHERE id = $1 AND password_hash = $4;

-- name: set_disabled
-- Disable (a time) or enable (NULL) a user; both invalidate all earlier tokens.
UPDATE users SET disabled_at = CAST($2 AS BIGINT),
    tokens_valid_from = CASE WHEN tokens_valid_from < $3 THEN $3 ELSE tokens_valid_from + 1 END
WHERE id = $1;

-- name: set_role
-- Change the role of a user.
UPDATE users SET role = $2 WHERE id = $1;

-- name: set_time_zone
-- The time zone in which a user reads and types times.
UPDATE users SET time_zone = $2 WHERE id = $1;

-- name: note_login
-- The time of the last login.
UPDATE users SET last_login_at = $2 WHERE id = $1;

-- name: remove
-- Delete a user.
DELETE FROM users WHERE id = $1;

-- name: of_account
-- The users of an account.
SELECT id, account_id, email, password_hash, role, tokens_valid_from, disabled_at, created_at, joined_at,
    last_login_at, time_zone, operator_since
FROM users WHERE account_id = $1 ORDER BY id;

-- name: operators
-- The people who operate the installation, the first ones first.
SELECT id, account_id, email, password_hash, role, tokens_valid_from, disabled_at, created_at, joined_at,
    last_login_at, time_zone, operator_since
FROM users WHERE operator_since IS NOT NULL ORDER BY operator_since, id;

-- name: set_operator
-- Since when a person operates the installation; NULL for one who no longer does.
UPDATE users SET operator_since = CAST($2 AS BIGINT) WHERE id = $1;

-- name: revoke_token
-- Revoke a token.
INSERT INTO revoked_tokens (id, account_id, expires_at) VALUES ($1, $2, $3) ON CONFLICT (id) DO NOTHING;

-- name: revoked_token
-- Whether a token is revoked.
SELECT 1 FROM revoked_tokens WHERE id = $1;

-- name: sweep_tokens
-- Delete revoked tokens that have expired, up to a limit.
DELETE FROM revoked_tokens WHERE id IN (SELECT id FROM revoked_tokens WHERE expires_at <= $1 LIMIT $2);
