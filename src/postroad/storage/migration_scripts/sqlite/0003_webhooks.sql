-- Webhooks: where an account wants to be told, with which secrets, and what was told.

-- One endpoint for each account. One that was removed keeps its row until its log is swept, and is seen by nobody: what a
-- new endpoint of the account does cannot touch what an old one has left. `events` are names with blanks between them.
CREATE TABLE webhooks (
    id TEXT NOT NULL PRIMARY KEY,
    account_id TEXT NOT NULL,
    url TEXT NOT NULL,
    events TEXT NOT NULL,
    enabled INTEGER NOT NULL CHECK (enabled IN (0, 1)),
    secret_hint TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    removed_at INTEGER
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX webhooks_of_account ON webhooks (account_id) WHERE removed_at IS NULL;
CREATE INDEX webhooks_removed ON webhooks (removed_at) WHERE removed_at IS NOT NULL;

-- When an account has last sent itself a test: a new endpoint does not end the wait for the next one.
CREATE TABLE webhook_pings (
    account_id TEXT NOT NULL PRIMARY KEY,
    pinged_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Signing secrets, encrypted with a key of the installation. The newest has no end; older ones sign beside it until theirs.
CREATE TABLE webhook_secrets (
    account_id TEXT NOT NULL,
    webhook_id TEXT NOT NULL,
    version INTEGER NOT NULL,
    secret BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    PRIMARY KEY (account_id, webhook_id, version)
) STRICT, WITHOUT ROWID;
CREATE INDEX webhook_secrets_over ON webhook_secrets (expires_at) WHERE expires_at IS NOT NULL;

-- What was told, or is to be. `body` is the request's bytes, made once. `ready` rows can be claimed. `waiting` rows wait until
-- `due_at`: for their next attempt, or for the end of a lease, which `worker` holds then. An attempt is counted when it is
-- claimed, so that a worker's death cannot make one too many. `url` is where the last attempt went.
-- With row ids, because SQLite stores rows of a kilobyte badly without them.
CREATE TABLE webhook_deliveries (
    account_id TEXT NOT NULL,
    webhook_id TEXT NOT NULL,
    id TEXT NOT NULL,
    event_id TEXT NOT NULL,
    event_type TEXT NOT NULL,
    message_id TEXT,
    recipient_id TEXT,
    replay_of TEXT,
    url TEXT NOT NULL,
    body BLOB NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('ready', 'waiting', 'succeeded', 'failed')),
    attempt_count INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    worker TEXT,
    created_at INTEGER NOT NULL,
    ended_at INTEGER,
    PRIMARY KEY (account_id, webhook_id, id)
) STRICT;
-- With `due_at`, so that counting what is ready, and for how long, reads no bodies.
CREATE INDEX webhook_deliveries_ready ON webhook_deliveries (webhook_id, id, due_at) WHERE state = 'ready';
CREATE INDEX webhook_deliveries_waiting ON webhook_deliveries (due_at) WHERE state = 'waiting';
CREATE INDEX webhook_deliveries_ended ON webhook_deliveries (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX webhook_deliveries_of_message ON webhook_deliveries (message_id, id);

-- Every attempt, with the receiver's answer, cut. `error` says why it failed when there is no status to say so.
CREATE TABLE webhook_attempts (
    account_id TEXT NOT NULL,
    webhook_id TEXT NOT NULL,
    delivery_id TEXT NOT NULL,
    number INTEGER NOT NULL,
    started_at INTEGER NOT NULL,
    duration INTEGER NOT NULL,
    status_code INTEGER,
    response_body TEXT,
    error TEXT,
    PRIMARY KEY (account_id, webhook_id, delivery_id, number)
) STRICT, WITHOUT ROWID;
