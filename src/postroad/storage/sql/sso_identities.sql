-- part: identity
SELECT account_id, issuer, subject, login_id, created_at FROM sso_identities

-- name: find
-- Who a subject of a provider is, for one connection.
-- include: identity
WHERE account_id = $1 AND issuer = $2 AND subject = $3;

-- name: of_login
-- Who somebody is at providers.
-- include: identity
WHERE login_id = $1 ORDER BY account_id, issuer, subject;

-- name: put
-- Bind a subject to a login.
INSERT INTO sso_identities (account_id, issuer, subject, login_id, created_at) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (account_id, issuer, subject) DO UPDATE SET login_id = excluded.login_id;

-- name: remove_of_login
-- Delete the identities of a login.
DELETE FROM sso_identities WHERE login_id = $1;
