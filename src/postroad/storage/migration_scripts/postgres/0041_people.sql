-- compatible from: 12
-- One person may belong to several accounts. A login is what a person logs in with; a user is a member of one account, and
-- users who have joined have a login. Several logins may have the same email: nobody can occupy an address.
CREATE TABLE logins (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    email TEXT COLLATE "C" NOT NULL,
    email_key TEXT COLLATE "C" NOT NULL,
    password_hash TEXT COLLATE "C",
    tokens_valid_from BIGINT NOT NULL,
    created_at BIGINT NOT NULL
);
CREATE INDEX logins_by_email ON logins (email_key, id);
INSERT INTO logins (id, email, email_key, password_hash, tokens_valid_from, created_at)
SELECT 'lgn_' || SUBSTR(id, 5), email, email_key, password_hash, tokens_valid_from, created_at FROM users
WHERE joined_at IS NOT NULL;

-- An email is unique in its account only, and there are more roles. As in SQLite, which cannot change a constraint, the
-- table is copied. Older versions read `password_hash` and `tokens_valid_from` here; they cannot create users any more.
CREATE TABLE users_new (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    account_id TEXT COLLATE "C" NOT NULL,
    email TEXT COLLATE "C" NOT NULL,
    email_key TEXT COLLATE "C" NOT NULL,
    password_hash TEXT COLLATE "C" NOT NULL,
    role TEXT COLLATE "C" NOT NULL CHECK (role IN ('owner', 'admin', 'developer', 'analyst', 'member', 'read_only')),
    tokens_valid_from BIGINT NOT NULL,
    disabled_at BIGINT,
    created_at BIGINT NOT NULL,
    joined_at BIGINT,
    last_login_at BIGINT,
    time_zone TEXT COLLATE "C",
    operator_since BIGINT,
    login_id TEXT COLLATE "C",
    UNIQUE (account_id, email_key)
);
INSERT INTO users_new (id, account_id, email, email_key, password_hash, role, tokens_valid_from, disabled_at, created_at,
    joined_at, last_login_at, time_zone, operator_since, login_id)
SELECT id, account_id, email, email_key, password_hash, role, tokens_valid_from, disabled_at, created_at,
    joined_at, last_login_at, time_zone, operator_since,
    CASE WHEN joined_at IS NOT NULL THEN 'lgn_' || SUBSTR(id, 5) END
FROM users;
DROP TABLE users;
ALTER TABLE users_new RENAME TO users;
ALTER TABLE users RENAME CONSTRAINT users_new_pkey TO users_pkey;
ALTER TABLE users RENAME CONSTRAINT users_new_role_check TO users_role_check;
ALTER TABLE users RENAME CONSTRAINT users_new_account_id_email_key_key TO users_account_id_email_key_key;
CREATE INDEX users_by_account ON users (account_id, id);
CREATE INDEX users_by_email ON users (email_key, id);
CREATE INDEX users_by_login ON users (login_id) WHERE login_id IS NOT NULL;

-- The networks of a login are those that its user was known from.
INSERT INTO known_networks (user_id, network, last_login_at)
SELECT 'lgn_' || SUBSTR(user_id, 5), network, last_login_at FROM known_networks WHERE SUBSTR(user_id, 1, 4) = 'usr_';

-- Browser sessions and API tokens; one without a row has ended. `methods` are how the person logged in, `confirmed_at` is
-- when they last proved who they are. What was made in a session ends with it: `parent_id`.
CREATE TABLE sessions (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    login_id TEXT COLLATE "C" NOT NULL,
    user_id TEXT COLLATE "C" NOT NULL,
    account_id TEXT COLLATE "C" NOT NULL,
    kind TEXT COLLATE "C" NOT NULL CHECK (kind IN ('browser', 'token')),
    name TEXT COLLATE "C" NOT NULL,
    device TEXT COLLATE "C" NOT NULL,
    network TEXT COLLATE "C" NOT NULL,
    methods TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    last_used_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    confirmed_at BIGINT NOT NULL,
    parent_id TEXT COLLATE "C"
);
CREATE INDEX sessions_by_login ON sessions (login_id, id);
CREATE INDEX sessions_by_user ON sessions (user_id, id);
CREATE INDEX sessions_by_account ON sessions (account_id);
CREATE INDEX sessions_by_parent ON sessions (parent_id) WHERE parent_id IS NOT NULL;
CREATE INDEX sessions_over ON sessions (expires_at);

-- Whether a link was made by an operator: it acts on the login as a whole, one of an owner on the user of that account.
ALTER TABLE password_links ADD COLUMN by_operator BIGINT NOT NULL DEFAULT 0;
-- Who created an SMTP credential; NULL for older ones, and those of the command line. Not `created_by`: older versions join
-- this table with `api_keys`, which has a column of that name.
ALTER TABLE credentials ADD COLUMN creator_id TEXT COLLATE "C";
