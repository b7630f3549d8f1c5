-- The foundation: who calls, what they own, and the mail they handed in.
-- Every table of an account's things is ordered by account first, so that it can be split by it later.
-- Times are microseconds since 1970. There are no foreign keys on purpose: `postroad audit` proves what they would, and
-- the hot path does not pay for them on every row.

CREATE TABLE accounts (
    id TEXT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('active', 'suspended')),
    suspended_reason TEXT,
    available INTEGER NOT NULL CHECK (available >= 0),
    reserved INTEGER NOT NULL CHECK (reserved >= 0),
    created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE ledger (
    account_id TEXT NOT NULL,
    id TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('grant', 'reserve', 'settle', 'release')),
    available INTEGER NOT NULL,
    reserved INTEGER NOT NULL,
    message_id TEXT,
    note TEXT,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (account_id, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE users (
    id TEXT NOT NULL PRIMARY KEY,
    account_id TEXT NOT NULL,
    email TEXT NOT NULL,
    email_key TEXT NOT NULL UNIQUE,
    password_hash TEXT NOT NULL,
    role TEXT NOT NULL CHECK (role IN ('owner', 'member', 'read_only')),
    tokens_valid_from INTEGER NOT NULL,
    disabled_at INTEGER,
    created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX users_by_account ON users (account_id, id);

CREATE TABLE revoked_tokens (
    id TEXT NOT NULL PRIMARY KEY,
    account_id TEXT NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE credentials (
    id TEXT NOT NULL PRIMARY KEY,
    account_id TEXT NOT NULL,
    name TEXT NOT NULL,
    username TEXT NOT NULL UNIQUE,
    password_hash TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    last_used_at INTEGER,
    revoked_at INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX credentials_by_account ON credentials (account_id, id);

CREATE TABLE api_keys (
    id TEXT NOT NULL PRIMARY KEY,
    account_id TEXT NOT NULL,
    credential_id TEXT NOT NULL,
    name TEXT NOT NULL,
    key_hash BLOB NOT NULL UNIQUE,
    hint TEXT NOT NULL,
    scopes TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    last_used_at INTEGER,
    revoked_at INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX api_keys_by_account ON api_keys (account_id, id);

CREATE TABLE domains (
    id TEXT NOT NULL PRIMARY KEY,
    account_id TEXT NOT NULL,
    name TEXT NOT NULL,
    verified_at INTEGER,
    created_at INTEGER NOT NULL,
    UNIQUE (account_id, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX domains_by_account ON domains (account_id, id);
-- A name can be claimed by many accounts, but proven by one only.
CREATE UNIQUE INDEX domains_verified ON domains (name) WHERE verified_at IS NOT NULL;

CREATE TABLE templates (
    id TEXT NOT NULL PRIMARY KEY,
    account_id TEXT NOT NULL,
    alias TEXT NOT NULL,
    subject TEXT NOT NULL,
    text TEXT,
    html TEXT,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    UNIQUE (account_id, alias)
) STRICT, WITHOUT ROWID;

-- Counts the changes to everything that decides who may do what, so that every process notices a revocation.
CREATE TABLE access_version (
    only_row INTEGER NOT NULL PRIMARY KEY CHECK (only_row = 1),
    version INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO access_version VALUES (1, 0);

-- `response` is the body of the 202 as it was sent: a replay answers with these very bytes.
-- With row ids, because SQLite stores rows of a kilobyte badly without them: a third less work for each message.
CREATE TABLE messages (
    account_id TEXT NOT NULL,
    id TEXT NOT NULL,
    credential_id TEXT NOT NULL,
    source TEXT NOT NULL CHECK (source IN ('api', 'smtp', 'test')),
    sender TEXT NOT NULL,
    sender_key TEXT NOT NULL,
    subject TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('queued', 'delivered', 'partial', 'failed')),
    billing_status TEXT NOT NULL CHECK (billing_status IN ('reserved', 'settled', 'released')),
    recipient_count INTEGER NOT NULL,
    credits_reserved INTEGER NOT NULL,
    size INTEGER NOT NULL,
    request_id TEXT NOT NULL,
    response BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (account_id, id)
) STRICT;

-- Kept apart, and in a table with row ids, because SQLite stores large values badly without them.
CREATE TABLE bodies (
    account_id TEXT NOT NULL,
    message_id TEXT NOT NULL,
    mime BLOB NOT NULL,
    PRIMARY KEY (account_id, message_id)
) STRICT;

CREATE TABLE recipients (
    account_id TEXT NOT NULL,
    message_id TEXT NOT NULL,
    id TEXT NOT NULL,
    email TEXT NOT NULL,
    email_key TEXT NOT NULL,
    domain TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('queued', 'deferred', 'delivered', 'bounced', 'failed')),
    billing_status TEXT NOT NULL CHECK (billing_status IN ('reserved', 'settled', 'released')),
    attempt_count INTEGER NOT NULL,
    last_smtp_code INTEGER,
    last_smtp_response TEXT,
    delivered_at INTEGER,
    bounced_at INTEGER,
    PRIMARY KEY (account_id, message_id, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX recipients_by_email ON recipients (account_id, email_key, message_id);

CREATE TABLE message_tags (
    account_id TEXT NOT NULL,
    tag TEXT NOT NULL,
    message_id TEXT NOT NULL,
    PRIMARY KEY (account_id, tag, message_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE idempotency_keys (
    credential_id TEXT NOT NULL,
    key TEXT NOT NULL,
    account_id TEXT NOT NULL,
    body_hash BLOB NOT NULL,
    message_id TEXT NOT NULL,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (credential_id, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_keys_by_expiry ON idempotency_keys (expires_at);
