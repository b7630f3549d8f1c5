-- part: login
SELECT id, email, email_key, password_hash, tokens_valid_from, created_at
FROM logins

-- name: insert
-- A new login.
INSERT INTO logins (id, email, email_key, password_hash, tokens_valid_from, created_at)
VALUES ($1, $2, $3, CAST($4 AS TEXT), $5, $6);

-- name: by_id
-- One login.
-- include: login
WHERE id = $1;

-- name: by_email
-- The logins with this email that have an enabled user in any account, oldest first.
-- include: login
WHERE email_key = $1 AND EXISTS (SELECT 1 FROM users WHERE users.login_id = logins.id AND users.disabled_at IS NULL)
ORDER BY id LIMIT $2;

-- name: used_from
-- The logins with this email that were used from a network.
SELECT logins.id FROM logins JOIN known_networks ON known_networks.user_id = logins.id
WHERE logins.email_key = $1 AND known_networks.network = $2;

-- name: a_hash
-- A hash of a password of this email, whose salt the others get.
SELECT password_hash FROM logins WHERE email_key = $1 AND password_hash IS NOT NULL ORDER BY id LIMIT 1;

-- name: hold
-- Lock a login until the transaction ends, unless its sessions were ended meanwhile.
UPDATE logins SET tokens_valid_from = tokens_valid_from WHERE id = $1 AND tokens_valid_from = $2;

-- name: set_password
-- A new password. `tokens_valid_from` always increases, whatever the clock says.
UPDATE logins SET password_hash = CAST($2 AS TEXT),
    tokens_valid_from = CASE WHEN tokens_valid_from < $3 THEN $3 ELSE tokens_valid_from + 1 END
WHERE id = $1;

-- name: replace_password
-- The same, unless the password has changed meanwhile.
UPDATE logins SET password_hash = $2,
    tokens_valid_from = CASE WHEN tokens_valid_from < $3 THEN $3 ELSE tokens_valid_from + 1 END
WHERE id = $1 AND password_hash = $4;

-- name: is_used
-- Whether a login has a user.
SELECT 1 FROM users WHERE login_id = $1 LIMIT 1;

-- name: remove
-- Delete a login.
DELETE FROM logins WHERE id = $1;
