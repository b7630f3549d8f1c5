-- part: connection
SELECT account_id, issuer, client_id, client_secret, scopes, role, groups_claim, group_roles, creates_users,
    allows_passwords, created_at, updated_at
FROM sso_connections

-- name: of_account
-- The connection of an account.
-- include: connection
WHERE account_id = $1;

-- name: by_domain
-- The connection for an email domain, as long as its account has verified the domain.
-- include: connection
WHERE account_id = (
    SELECT sso_domains.account_id FROM sso_domains
    JOIN domains ON domains.account_id = sso_domains.account_id AND domains.name = sso_domains.domain
    WHERE sso_domains.domain = $1 AND domains.verified_at IS NOT NULL);

-- name: put
-- Create or change the connection of an account.
INSERT INTO sso_connections (account_id, issuer, client_id, client_secret, scopes, role, groups_claim, group_roles,
    creates_users, allows_passwords, created_at, updated_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
ON CONFLICT (account_id) DO UPDATE SET issuer = excluded.issuer, client_id = excluded.client_id,
    client_secret = excluded.client_secret, scopes = excluded.scopes, role = excluded.role,
    groups_claim = excluded.groups_claim, group_roles = excluded.group_roles,
    creates_users = excluded.creates_users, allows_passwords = excluded.allows_passwords,
    updated_at = excluded.updated_at;

-- name: remove
-- Delete the connection of an account.
DELETE FROM sso_connections WHERE account_id = $1;

-- name: domains
-- The email domains of a connection.
SELECT domain FROM sso_domains WHERE account_id = $1 ORDER BY domain;

-- name: put_domain
-- An email domain of a connection, which it takes over from an account that no longer has the domain.
INSERT INTO sso_domains (domain, account_id) VALUES ($1, $2)
ON CONFLICT (domain) DO UPDATE SET account_id = excluded.account_id;

-- name: remove_domains
-- Delete the email domains of a connection.
DELETE FROM sso_domains WHERE account_id = $1;

-- name: end_sso_sessions
-- End the sessions of a user that began by single sign-on, but for one and what was made in it.
DELETE FROM sessions WHERE user_id = $1 AND (methods = 'sso' OR methods LIKE 'sso %') AND id <> $2
    AND (parent_id IS NULL OR parent_id <> $2);

-- name: end_local_sessions
-- End the sessions of a user that began without single sign-on, but for one and what was made in it.
DELETE FROM sessions WHERE user_id = $1 AND NOT (methods = 'sso' OR methods LIKE 'sso %') AND methods <> 'operator'
    AND id <> $2 AND (parent_id IS NULL OR parent_id <> $2);
