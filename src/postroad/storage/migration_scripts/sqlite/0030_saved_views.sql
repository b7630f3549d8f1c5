-- compatible from: 12
-- Searches that an account has given a name, for the page of messages.
CREATE TABLE saved_views (
    account_id TEXT NOT NULL,
    id TEXT NOT NULL,
    name TEXT NOT NULL,
    search TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (account_id, id),
    UNIQUE (account_id, name)
) STRICT, WITHOUT ROWID;
