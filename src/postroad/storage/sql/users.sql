-- part: user
SELECT id, account_id, email, role, tokens_valid_from, disabled_at, created_at, joined_at,
    last_login_at, time_zone, operator_since, login_id
FROM users

-- name: insert
-- A new user; nothing when the account has one with this email.
INSERT INTO users (id, account_id, email, email_key, role, tokens_valid_from, disabled_at, created_at,
    joined_at, login_id)
VALUES ($1, $2, $3, $4, $5, $6, NULL, $6, $7, $8) ON CONFLICT (account_id, email_key) DO NOTHING;

-- name: by_email
-- The users with this email, one in each of their accounts.
-- include: user
WHERE email_key = $1 ORDER BY id LIMIT $2;

-- name: of_login
-- The users of a login, one in each of its accounts.
-- include: user
WHERE login_id = $1 ORDER BY id;

-- name: accounts_of_login
-- The accounts that the person of a login can enter, by name.
SELECT accounts.id, accounts.name FROM users JOIN accounts ON accounts.id = users.account_id
WHERE users.login_id = $1 AND users.disabled_at IS NULL AND accounts.closed_at IS NULL
ORDER BY accounts.name, accounts.id;

-- name: by_id
-- One user.
-- include: user
WHERE id = $1;

-- name: follow_login
-- A changed password of a login invalidates the tokens of all its users.
UPDATE users SET tokens_valid_from = CASE WHEN tokens_valid_from < $2 THEN $2 ELSE tokens_valid_from + 1 END
WHERE login_id = $1;

-- name: set_login
-- What a user logs in with; the first login sets `joined_at`.
UPDATE users SET login_id = $2, joined_at = COALESCE(joined_at, $3) WHERE id = $1;

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
-- The time of the last login, unless the user was disabled, or got another login, meanwhile.
UPDATE users SET last_login_at = $3 WHERE id = $1 AND login_id = $2 AND disabled_at IS NULL;

-- name: remove
-- Delete a user.
DELETE FROM users WHERE id = $1;

-- name: of_account
-- The users of an account.
-- include: user
WHERE account_id = $1 ORDER BY id;

-- name: operators
-- The people who operate the installation, the first ones first.
-- include: user
WHERE operator_since IS NOT NULL ORDER BY operator_since, id;

-- name: set_operator
-- Since when a person operates the installation; NULL for one who no longer does.
UPDATE users SET operator_since = CAST($2 AS BIGINT) WHERE id = $1;
