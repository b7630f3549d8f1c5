-- name: insert
-- A new person; nothing when the email is taken.
INSERT INTO users (id, account_id, email, email_key, password_hash, role, tokens_valid_from, disabled_at, created_at,
    joined_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, NULL, $7, $8) ON CONFLICT (email_key) DO NOTHING;

-- name: by_email
-- The person behind a login.
SELECT id, account_id, email, password_hash, role, tokens_valid_from, disabled_at, created_at, joined_at,
    last_login_at
FROM users WHERE email_key = $1;

-- name: by_id
-- One person.
SELECT id, account_id, email, password_hash, role, tokens_valid_from, disabled_at, created_at, joined_at,
    last_login_at
FROM users WHERE id = $1;

-- name: set_password
-- A new password; every token issued before it is dead. `tokens_valid_from` always moves, whatever the clocks say. Who has
-- a password has joined.
UPDATE users SET password_hash = $2, joined_at = COALESCE(joined_at, $3),
    tokens_valid_from = CASE WHEN tokens_valid_from < $3 THEN $3 ELSE tokens_valid_from + 1 END
WHERE id = $1;

-- name: replace_password
-- The same, unless the password is another one by now.
UPDATE users SET password_hash = $2,
    tokens_valid_from = CASE WHEN tokens_valid_from < $3 THEN $3 ELSE tokens_valid_from + 1 END
WHERE id = $1 AND password_hash = $4;

-- name: set_disabled
-- Lock a person out (a time) or let them in again (NULL); tokens issued before are dead either way.
UPDATE users SET disabled_at = CAST($2 AS BIGINT),
    tokens_valid_from = CASE WHEN tokens_valid_from < $3 THEN $3 ELSE tokens_valid_from + 1 END
WHERE id = $1;

-- name: set_role
-- What a person may do from now on.
UPDATE users SET role = $2 WHERE id = $1;

-- name: note_login
-- When somebody last logged in.
UPDATE users SET last_login_at = $2 WHERE id = $1;

-- name: remove
-- A person who is gone.
DELETE FROM users WHERE id = $1;

-- name: of_account
-- The people of an account.
SELECT id, account_id, email, password_hash, role, tokens_valid_from, disabled_at, created_at, joined_at,
    last_login_at
FROM users WHERE account_id = $1 ORDER BY id;

-- name: revoke_token
-- A token that was logged out.
INSERT INTO revoked_tokens (id, account_id, expires_at) VALUES ($1, $2, $3) ON CONFLICT (id) DO NOTHING;

-- name: revoked_token
-- Whether a token was logged out.
SELECT 1 FROM revoked_tokens WHERE id = $1;

-- name: sweep_tokens
-- Forget tokens that have expired by themselves, some at a time.
DELETE FROM revoked_tokens WHERE id IN (SELECT id FROM revoked_tokens WHERE expires_at <= $1 LIMIT $2);
