-- compatible from: 12
-- The OpenID Connect provider with which people of an account log in, chosen by its owners. The secret of the client is
-- encrypted. `group_roles` is an object of JSON: a role by group, in the order in which they count.
CREATE TABLE sso_connections (
    account_id TEXT NOT NULL PRIMARY KEY,
    issuer TEXT NOT NULL,
    client_id TEXT NOT NULL,
    client_secret BLOB,
    scopes TEXT NOT NULL,
    role TEXT NOT NULL,
    groups_claim TEXT NOT NULL,
    group_roles TEXT NOT NULL,
    creates_users INTEGER NOT NULL,
    allows_passwords INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The email domains of such a connection. The account must also have verified the domain.
CREATE TABLE sso_domains (
    domain TEXT NOT NULL PRIMARY KEY,
    account_id TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX sso_domains_by_account ON sso_domains (account_id);

-- Who somebody is at a provider: the subject, which unlike an email never changes hands. It counts for one connection;
-- that of the installation has an empty account id.
CREATE TABLE sso_identities (
    account_id TEXT NOT NULL,
    issuer TEXT NOT NULL,
    subject TEXT NOT NULL,
    login_id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (account_id, issuer, subject)
) STRICT, WITHOUT ROWID;
CREATE INDEX sso_identities_by_login ON sso_identities (login_id);
