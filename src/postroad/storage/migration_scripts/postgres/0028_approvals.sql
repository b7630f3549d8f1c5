-- compatible from: 12
-- Sends of API keys that wait for the approval of a person: more recipients than the key may send to without it.
ALTER TABLE api_keys ADD COLUMN approval_above BIGINT;

CREATE TABLE approvals (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    account_id TEXT COLLATE "C" NOT NULL,
    key_id TEXT COLLATE "C" NOT NULL,
    identity TEXT COLLATE "C" NOT NULL,
    idempotency_key TEXT COLLATE "C" NOT NULL,
    body_hash BYTEA NOT NULL,
    is_batch BIGINT NOT NULL,
    is_test BIGINT NOT NULL,
    recipients BIGINT NOT NULL,
    request_id TEXT COLLATE "C" NOT NULL,
    state TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    -- Last, so that SQLite reads the others without it.
    body BYTEA NOT NULL,
    UNIQUE (identity, idempotency_key)
);
CREATE INDEX approvals_by_account ON approvals (account_id, id);
CREATE INDEX approvals_by_time ON approvals (created_at);
CREATE INDEX approvals_by_state ON approvals (account_id, state, created_at, key_id);
