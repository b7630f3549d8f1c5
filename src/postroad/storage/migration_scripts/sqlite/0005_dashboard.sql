-- The dashboard: what its charts count, who did what, how people choose their password, and the ways to find a message.

-- What was accepted and what became of it, by hour (hours since 1970, UTC). `provider` is the mailbox provider that gave the
-- result; what was accepted has none. Written with the mail itself, under the account's lock.
CREATE TABLE traffic_hours (
    account_id TEXT NOT NULL,
    hour INTEGER NOT NULL,
    provider TEXT NOT NULL,
    messages INTEGER NOT NULL,
    recipients INTEGER NOT NULL,
    delivered INTEGER NOT NULL,
    bounced INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    deferred INTEGER NOT NULL,
    PRIMARY KEY (account_id, hour, provider)
) STRICT, WITHOUT ROWID;
CREATE INDEX traffic_hours_over ON traffic_hours (hour);

-- Who did what in an account. `actor` is what a person was called then, because people go; what an operator or the service
-- itself has done has no person. `subject` is what it was done to, in words that people know.
CREATE TABLE journal (
    account_id TEXT NOT NULL,
    id TEXT NOT NULL,
    actor_kind TEXT NOT NULL CHECK (actor_kind IN ('person', 'operator', 'service')),
    user_id TEXT,
    actor TEXT NOT NULL,
    action TEXT NOT NULL,
    subject TEXT NOT NULL,
    detail TEXT NOT NULL,
    request_id TEXT NOT NULL,
    client_address TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (account_id, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX journal_over ON journal (created_at);

-- Links by which a person chooses a password, once. A new one replaces the one before.
CREATE TABLE password_links (
    token_hash BLOB NOT NULL PRIMARY KEY,
    account_id TEXT NOT NULL,
    user_id TEXT NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX password_links_of_user ON password_links (user_id);
CREATE INDEX password_links_over ON password_links (expires_at);

-- `joined_at`: when they first chose a password; who was invited and has not come yet has none.
ALTER TABLE users ADD COLUMN joined_at INTEGER;
ALTER TABLE users ADD COLUMN last_login_at INTEGER;
UPDATE users SET joined_at = created_at;

-- A message is found by how it ended, and by its sender. One that has not ended is found by the queue.
CREATE INDEX messages_by_status ON messages (account_id, status, id) WHERE status <> 'queued';
CREATE INDEX messages_by_sender ON messages (account_id, sender_key, id);
-- The latest refusals of an account.
CREATE INDEX attempts_refused ON attempts (account_id, started_at) WHERE verdict IN ('bounced', 'failed');
-- What failed and may be told again.
CREATE INDEX webhook_deliveries_failed ON webhook_deliveries (webhook_id, id) WHERE state = 'failed';
