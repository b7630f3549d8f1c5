-- Delivery: what waits, what was tried, how destinations fare, the keys that sign, and the addresses to leave alone.

-- One row for each recipient that is not final; the row goes with the final result. `lane` is the recipient's domain, a
-- blank, and the account: work is taken lane by lane, so that neither a destination nor an account can hold up another.
-- `ready` rows can be claimed. The others wait until `due_at`: for their next attempt, or for the end of a lease, which
-- `worker` holds then. A worker that is gone leaves its name behind, and `lost_leases` counts that.
CREATE TABLE queue (
    account_id TEXT NOT NULL,
    message_id TEXT NOT NULL,
    recipient_id TEXT NOT NULL,
    lane TEXT NOT NULL,
    email TEXT NOT NULL,
    email_key TEXT NOT NULL,
    size INTEGER NOT NULL,
    attempt_count INTEGER NOT NULL,
    lost_leases INTEGER NOT NULL,
    ready INTEGER NOT NULL CHECK (ready IN (0, 1)),
    queued_at INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    worker TEXT,
    PRIMARY KEY (account_id, message_id, recipient_id)
) STRICT, WITHOUT ROWID;
-- Recipient ids sort by time: within a lane the oldest comes first.
CREATE INDEX queue_ready ON queue (lane, recipient_id) WHERE ready = 1;
CREATE INDEX queue_waiting ON queue (due_at) WHERE ready = 0;

INSERT INTO queue (account_id, message_id, recipient_id, lane, email, email_key, size, attempt_count, lost_leases, ready,
    queued_at, due_at)
SELECT recipients.account_id, message_id, recipients.id, domain || ' ' || recipients.account_id, email, email_key, size,
    attempt_count, 0, 1, created_at, created_at
FROM recipients JOIN messages ON messages.account_id = recipients.account_id AND messages.id = recipients.message_id
WHERE recipients.status IN ('queued', 'deferred');

-- Every attempt, with the destination's words. `verdict` is what followed from it, `fault` whose it was, `reason` the name of
-- the rule that said so. `tls` is empty for a connection in plain text.
CREATE TABLE attempts (
    account_id TEXT NOT NULL,
    message_id TEXT NOT NULL,
    recipient_id TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    duration INTEGER NOT NULL,
    pool TEXT NOT NULL,
    host TEXT NOT NULL,
    address TEXT NOT NULL,
    tls TEXT NOT NULL,
    stage TEXT NOT NULL,
    verdict TEXT NOT NULL CHECK (verdict IN ('delivered', 'bounced', 'failed', 'retry')),
    fault TEXT,
    reason TEXT NOT NULL,
    smtp_code INTEGER,
    enhanced_code TEXT NOT NULL,
    response TEXT NOT NULL,
    in_doubt INTEGER NOT NULL CHECK (in_doubt IN (0, 1)),
    PRIMARY KEY (account_id, message_id, recipient_id, started_at)
) STRICT, WITHOUT ROWID;

-- What workers know of the pools that are not simply open, so that an operator can see why mail waits.
CREATE TABLE pools (
    worker TEXT NOT NULL,
    name TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('slowed', 'paused', 'blocked')),
    reason TEXT NOT NULL,
    until INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (worker, name)
) STRICT, WITHOUT ROWID;

-- Keys that sign for a domain (RFC 6376). The private key is encrypted with a key of the installation.
CREATE TABLE dkim_keys (
    account_id TEXT NOT NULL,
    domain_id TEXT NOT NULL,
    selector TEXT NOT NULL,
    private_key BLOB NOT NULL,
    public_key BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (account_id, domain_id, selector)
) STRICT, WITHOUT ROWID;

-- Addresses that do not exist: a recipient on the list is accepted and ends bounced without an attempt.
CREATE TABLE suppressions (
    account_id TEXT NOT NULL,
    email_key TEXT NOT NULL,
    source TEXT NOT NULL CHECK (source IN ('bounce', 'late_bounce', 'operator')),
    reason TEXT NOT NULL,
    message_id TEXT,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (account_id, email_key)
) STRICT, WITHOUT ROWID;

-- Reports that came back after a recipient was final (RFC 3464); the final state never changes.
CREATE TABLE late_bounces (
    account_id TEXT NOT NULL,
    message_id TEXT NOT NULL,
    recipient_id TEXT NOT NULL,
    received_at INTEGER NOT NULL,
    action TEXT NOT NULL,
    status TEXT NOT NULL,
    fault TEXT NOT NULL,
    response TEXT NOT NULL,
    PRIMARY KEY (account_id, message_id, recipient_id, received_at)
) STRICT, WITHOUT ROWID;
