-- compatible from: 12
-- The OpenID Connect provider with which people of an account log in, chosen by its owners. The secret of the client is
-- encrypted. `group_roles` is an object of JSON: a role by group, in the order in which they count.
CREATE TABLE sso_connections (
    account_id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    issuer TEXT COLLATE "C" NOT NULL,
    client_id TEXT COLLATE "C" NOT NULL,
    client_secret BYTEA,
    scopes TEXT COLLATE "C" NOT NULL,
    role TEXT COLLATE "C" NOT NULL,
    groups_claim TEXT COLLATE "C" NOT NULL,
    group_roles TEXT COLLATE "C" NOT NULL,
    creates_users BIGINT NOT NULL,
    allows_passwords BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);

-- The email domains of such a connection. The account must also have verified the domain.
CREATE TABLE sso_domains (
    domain TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    account_id TEXT COLLATE "C" NOT NULL
);
CREATE INDEX sso_domains_by_account ON sso_domains (account_id);

-- Who somebody is at a provider: the subject, which unlike an email never changes hands. It counts for one connection;
-- that of the installation has an empty account id.
CREATE TABLE sso_identities (
    account_id TEXT COLLATE "C" NOT NULL,
    issuer TEXT COLLATE "C" NOT NULL,
    subject TEXT COLLATE "C" NOT NULL,
    login_id TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (account_id, issuer, subject)
);
CREATE INDEX sso_identities_by_login ON sso_identities (login_id);
