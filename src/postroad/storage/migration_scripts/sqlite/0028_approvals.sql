-- compatible from: 12
-- Sends of API keys that wait for the approval of a person: more recipients than the key may send to without it.
ALTER TABLE api_keys ADD COLUMN approval_above INTEGER;

CREATE TABLE approvals (
    id TEXT NOT NULL PRIMARY KEY,
    account_id TEXT NOT NULL,
    key_id TEXT NOT NULL,
    identity TEXT NOT NULL,
    idempotency_key TEXT NOT NULL,
    body_hash BLOB NOT NULL,
    is_batch INTEGER NOT NULL,
    is_test INTEGER NOT NULL,
    recipients INTEGER NOT NULL,
    request_id TEXT NOT NULL,
    state TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    -- Last, so that SQLite reads the others without it.
    body BLOB NOT NULL,
    UNIQUE (identity, idempotency_key)
) STRICT, WITHOUT ROWID;
CREATE INDEX approvals_by_account ON approvals (account_id, id);
CREATE INDEX approvals_by_time ON approvals (created_at);
CREATE INDEX approvals_by_state ON approvals (account_id, state, created_at, key_id);
