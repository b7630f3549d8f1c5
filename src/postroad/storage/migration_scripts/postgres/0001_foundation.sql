-- The foundation: who calls, what they own, and the mail they handed in.
-- Every table of an account's things is ordered by account first, so that it can be split by it later.
-- Times are microseconds since 1970. There are no foreign keys on purpose: `postroad audit` proves what they would, and
-- the hot path does not pay for them on every row. Text sorts by its bytes, as in SQLite: ids are cursors.

CREATE TABLE accounts (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    name TEXT COLLATE "C" NOT NULL,
    status TEXT COLLATE "C" NOT NULL CHECK (status IN ('active', 'suspended')),
    suspended_reason TEXT COLLATE "C",
    available BIGINT NOT NULL CHECK (available >= 0),
    reserved BIGINT NOT NULL CHECK (reserved >= 0),
    created_at BIGINT NOT NULL
);

CREATE TABLE ledger (
    account_id TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    kind TEXT COLLATE "C" NOT NULL CHECK (kind IN ('grant', 'reserve', 'settle', 'release')),
    available BIGINT NOT NULL,
    reserved BIGINT NOT NULL,
    message_id TEXT COLLATE "C",
    note TEXT COLLATE "C",
    created_at BIGINT NOT NULL,
    PRIMARY KEY (account_id, id)
);

CREATE TABLE users (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    account_id TEXT COLLATE "C" NOT NULL,
    email TEXT COLLATE "C" NOT NULL,
    email_key TEXT COLLATE "C" NOT NULL UNIQUE,
    password_hash TEXT COLLATE "C" NOT NULL,
    role TEXT COLLATE "C" NOT NULL CHECK (role IN ('owner', 'member', 'read_only')),
    tokens_valid_from BIGINT NOT NULL,
    disabled_at BIGINT,
    created_at BIGINT NOT NULL
);
CREATE INDEX users_by_account ON users (account_id, id);

CREATE TABLE revoked_tokens (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    account_id TEXT COLLATE "C" NOT NULL,
    expires_at BIGINT NOT NULL
);

CREATE TABLE credentials (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    account_id TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    username TEXT COLLATE "C" NOT NULL UNIQUE,
    password_hash TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    last_used_at BIGINT,
    revoked_at BIGINT
);
CREATE INDEX credentials_by_account ON credentials (account_id, id);

CREATE TABLE api_keys (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    account_id TEXT COLLATE "C" NOT NULL,
    credential_id TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    key_hash BYTEA NOT NULL UNIQUE,
    hint TEXT COLLATE "C" NOT NULL,
    scopes TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    last_used_at BIGINT,
    revoked_at BIGINT
);
CREATE INDEX api_keys_by_account ON api_keys (account_id, id);

CREATE TABLE domains (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    account_id TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    verified_at BIGINT,
    created_at BIGINT NOT NULL,
    UNIQUE (account_id, name)
);
CREATE INDEX domains_by_account ON domains (account_id, id);
-- A name can be claimed by many accounts, but proven by one only.
CREATE UNIQUE INDEX domains_verified ON domains (name) WHERE verified_at IS NOT NULL;

CREATE TABLE templates (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    account_id TEXT COLLATE "C" NOT NULL,
    alias TEXT COLLATE "C" NOT NULL,
    subject TEXT COLLATE "C" NOT NULL,
    text TEXT COLLATE "C",
    html TEXT COLLATE "C",
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    UNIQUE (account_id, alias)
);

-- Counts the changes to everything that decides who may do what, so that every process notices a revocation.
CREATE TABLE access_version (
    only_row BIGINT NOT NULL PRIMARY KEY CHECK (only_row = 1),
    version BIGINT NOT NULL
);
INSERT INTO access_version VALUES (1, 0);

-- `response` is the body of the 202 as it was sent: a replay answers with these very bytes.
CREATE TABLE messages (
    account_id TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    credential_id TEXT COLLATE "C" NOT NULL,
    source TEXT COLLATE "C" NOT NULL CHECK (source IN ('api', 'smtp', 'test')),
    sender TEXT COLLATE "C" NOT NULL,
    sender_key TEXT COLLATE "C" NOT NULL,
    subject TEXT COLLATE "C" NOT NULL,
    status TEXT COLLATE "C" NOT NULL CHECK (status IN ('queued', 'delivered', 'partial', 'failed')),
    billing_status TEXT COLLATE "C" NOT NULL CHECK (billing_status IN ('reserved', 'settled', 'released')),
    recipient_count BIGINT NOT NULL,
    credits_reserved BIGINT NOT NULL,
    size BIGINT NOT NULL,
    request_id TEXT COLLATE "C" NOT NULL,
    response BYTEA NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (account_id, id)
);

-- Kept apart from the rows that change. Values up to a page stay beside their row and none is compressed: mail of a few
-- kilobytes then costs one write instead of four.
CREATE TABLE bodies (
    account_id TEXT COLLATE "C" NOT NULL,
    message_id TEXT COLLATE "C" NOT NULL,
    mime BYTEA NOT NULL,
    PRIMARY KEY (account_id, message_id)
) WITH (toast_tuple_target = 8160);
ALTER TABLE bodies ALTER COLUMN mime SET STORAGE EXTERNAL;

CREATE TABLE recipients (
    account_id TEXT COLLATE "C" NOT NULL,
    message_id TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    email TEXT COLLATE "C" NOT NULL,
    email_key TEXT COLLATE "C" NOT NULL,
    domain TEXT COLLATE "C" NOT NULL,
    status TEXT COLLATE "C" NOT NULL CHECK (status IN ('queued', 'deferred', 'delivered', 'bounced', 'failed')),
    billing_status TEXT COLLATE "C" NOT NULL CHECK (billing_status IN ('reserved', 'settled', 'released')),
    attempt_count BIGINT NOT NULL,
    last_smtp_code BIGINT,
    last_smtp_response TEXT COLLATE "C",
    delivered_at BIGINT,
    bounced_at BIGINT,
    PRIMARY KEY (account_id, message_id, id)
);
CREATE INDEX recipients_by_email ON recipients (account_id, email_key, message_id);

CREATE TABLE message_tags (
    account_id TEXT COLLATE "C" NOT NULL,
    tag TEXT COLLATE "C" NOT NULL,
    message_id TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (account_id, tag, message_id)
);

CREATE TABLE idempotency_keys (
    credential_id TEXT COLLATE "C" NOT NULL,
    key TEXT COLLATE "C" NOT NULL,
    account_id TEXT COLLATE "C" NOT NULL,
    body_hash BYTEA NOT NULL,
    message_id TEXT COLLATE "C" NOT NULL,
    expires_at BIGINT NOT NULL,
    PRIMARY KEY (credential_id, key)
);
-- Rows come in the order of their expiry, so the smallest kind of index finds the oldest.
CREATE INDEX idempotency_keys_by_expiry ON idempotency_keys USING brin (expires_at);
