-- Webhooks: where an account wants to be told, with which secrets, and what was told.

-- One endpoint for each account. One that was removed keeps its row until its log is swept, and is seen by nobody: what a
-- new endpoint of the account does cannot touch what an old one has left. `events` are names with blanks between them.
CREATE TABLE webhooks (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    account_id TEXT COLLATE "C" NOT NULL,
    url TEXT COLLATE "C" NOT NULL,
    events TEXT COLLATE "C" NOT NULL,
    enabled BIGINT NOT NULL CHECK (enabled IN (0, 1)),
    secret_hint TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    removed_at BIGINT
);
CREATE UNIQUE INDEX webhooks_of_account ON webhooks (account_id) WHERE removed_at IS NULL;
CREATE INDEX webhooks_removed ON webhooks (removed_at) WHERE removed_at IS NOT NULL;

-- When an account has last sent itself a test: a new endpoint does not end the wait for the next one.
CREATE TABLE webhook_pings (
    account_id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    pinged_at BIGINT NOT NULL
);

-- Signing secrets, encrypted with a key of the installation. The newest has no end; older ones sign beside it until theirs.
CREATE TABLE webhook_secrets (
    account_id TEXT COLLATE "C" NOT NULL,
    webhook_id TEXT COLLATE "C" NOT NULL,
    version BIGINT NOT NULL,
    secret BYTEA NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT,
    PRIMARY KEY (account_id, webhook_id, version)
);
CREATE INDEX webhook_secrets_over ON webhook_secrets (expires_at) WHERE expires_at IS NOT NULL;

-- What was told, or is to be. `body` is the request's bytes, made once. `ready` rows can be claimed. `waiting` rows wait until
-- `due_at`: for their next attempt, or for the end of a lease, which `worker` holds then. An attempt is counted when it is
-- claimed, so that a worker's death cannot make one too many. `url` is where the last attempt went.
CREATE TABLE webhook_deliveries (
    account_id TEXT COLLATE "C" NOT NULL,
    webhook_id TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    event_id TEXT COLLATE "C" NOT NULL,
    event_type TEXT COLLATE "C" NOT NULL,
    message_id TEXT COLLATE "C",
    recipient_id TEXT COLLATE "C",
    replay_of TEXT COLLATE "C",
    url TEXT COLLATE "C" NOT NULL,
    body BYTEA NOT NULL,
    state TEXT COLLATE "C" NOT NULL CHECK (state IN ('ready', 'waiting', 'succeeded', 'failed')),
    attempt_count BIGINT NOT NULL,
    due_at BIGINT NOT NULL,
    worker TEXT COLLATE "C",
    created_at BIGINT NOT NULL,
    ended_at BIGINT,
    PRIMARY KEY (account_id, webhook_id, id)
);
-- With `due_at`, so that counting what is ready, and for how long, reads no bodies.
CREATE INDEX webhook_deliveries_ready ON webhook_deliveries (webhook_id, id, due_at) WHERE state = 'ready';
CREATE INDEX webhook_deliveries_waiting ON webhook_deliveries (due_at) WHERE state = 'waiting';
CREATE INDEX webhook_deliveries_ended ON webhook_deliveries (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX webhook_deliveries_of_message ON webhook_deliveries (message_id, id);

-- Every attempt, with the receiver's answer, cut. `error` says why it failed when there is no status to say so.
CREATE TABLE webhook_attempts (
    account_id TEXT COLLATE "C" NOT NULL,
    webhook_id TEXT COLLATE "C" NOT NULL,
    delivery_id TEXT COLLATE "C" NOT NULL,
    number BIGINT NOT NULL,
    started_at BIGINT NOT NULL,
    duration BIGINT NOT NULL,
    status_code BIGINT,
    response_body TEXT COLLATE "C",
    error TEXT COLLATE "C",
    PRIMARY KEY (account_id, webhook_id, delivery_id, number)
);
