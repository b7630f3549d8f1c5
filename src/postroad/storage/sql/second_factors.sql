-- part: factor_of_user
SELECT 1 FROM totp_secrets WHERE totp_secrets.login_id = users.login_id AND totp_secrets.confirmed_at IS NOT NULL
UNION ALL SELECT 1 FROM passkeys WHERE passkeys.login_id = users.login_id

-- name: totp
-- The authenticator app of a login, also one that is not confirmed yet.
SELECT secret, created_at, confirmed_at, last_step FROM totp_secrets WHERE login_id = $1;

-- name: put_totp
-- A new secret, in place of one that was never confirmed.
INSERT INTO totp_secrets (login_id, secret, created_at, confirmed_at, last_step) VALUES ($1, $2, $3, NULL, 0)
ON CONFLICT (login_id) DO UPDATE SET secret = excluded.secret, created_at = excluded.created_at
WHERE totp_secrets.confirmed_at IS NULL;

-- name: confirm_totp
-- The first code of this secret was right.
UPDATE totp_secrets SET confirmed_at = $2, last_step = $3 WHERE login_id = $1 AND confirmed_at IS NULL AND secret = $4;

-- name: use_step
-- A code was right: codes of its step and of earlier ones no longer are.
UPDATE totp_secrets SET last_step = $2 WHERE login_id = $1 AND confirmed_at IS NOT NULL AND last_step < $2;

-- name: remove_totp
-- Delete the authenticator app of a login.
DELETE FROM totp_secrets WHERE login_id = $1;

-- name: insert_codes
-- A recovery code.
INSERT INTO recovery_codes (login_id, code_hash) VALUES ($1, $2);

-- name: use_code
-- A recovery code is used.
DELETE FROM recovery_codes WHERE login_id = $1 AND code_hash = $2;

-- name: remove_codes
-- Delete the recovery codes of a login.
DELETE FROM recovery_codes WHERE login_id = $1;

-- name: of_login
-- Since when a login has an authenticator app, how many passkeys, and how many recovery codes are left.
SELECT (SELECT confirmed_at FROM totp_secrets WHERE login_id = logins.id),
    (SELECT COUNT(*) FROM passkeys WHERE login_id = logins.id),
    (SELECT COUNT(*) FROM recovery_codes WHERE login_id = logins.id)
FROM logins WHERE id = $1;

-- name: users_with
-- The users of an account whose login has a second factor.
SELECT id FROM users WHERE account_id = $1 AND EXISTS (
-- include: factor_of_user
) ORDER BY id;

-- name: operators_without
-- How many operators can log in with a password alone.
SELECT COUNT(*) FROM users JOIN logins ON logins.id = users.login_id
WHERE users.operator_since IS NOT NULL AND users.disabled_at IS NULL AND logins.password_hash IS NOT NULL
    AND NOT EXISTS (
-- include: factor_of_user
    );
