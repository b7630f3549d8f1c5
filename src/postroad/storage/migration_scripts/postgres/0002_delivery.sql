-- Delivery: what waits, what was tried, how destinations fare, the keys that sign, and the addresses to leave alone.

-- One row for each recipient that is not final; the row goes with the final result. `lane` is the recipient's domain, a
-- blank, and the account: work is taken lane by lane, so that neither a destination nor an account can hold up another.
-- `ready` rows can be claimed. The others wait until `due_at`: for their next attempt, or for the end of a lease, which
-- `worker` holds then. A worker that is gone leaves its name behind, and `lost_leases` counts that.
CREATE TABLE queue (
    account_id TEXT COLLATE "C" NOT NULL,
    message_id TEXT COLLATE "C" NOT NULL,
    recipient_id TEXT COLLATE "C" NOT NULL,
    lane TEXT COLLATE "C" NOT NULL,
    email TEXT COLLATE "C" NOT NULL,
    email_key TEXT COLLATE "C" NOT NULL,
    size BIGINT NOT NULL,
    attempt_count BIGINT NOT NULL,
    lost_leases BIGINT NOT NULL,
    ready BIGINT NOT NULL CHECK (ready IN (0, 1)),
    queued_at BIGINT NOT NULL,
    due_at BIGINT NOT NULL,
    worker TEXT COLLATE "C",
    PRIMARY KEY (account_id, message_id, recipient_id)
);
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
    account_id TEXT COLLATE "C" NOT NULL,
    message_id TEXT COLLATE "C" NOT NULL,
    recipient_id TEXT COLLATE "C" NOT NULL,
    started_at BIGINT NOT NULL,
    duration BIGINT NOT NULL,
    pool TEXT COLLATE "C" NOT NULL,
    host TEXT COLLATE "C" NOT NULL,
    address TEXT COLLATE "C" NOT NULL,
    tls TEXT COLLATE "C" NOT NULL,
    stage TEXT COLLATE "C" NOT NULL,
    verdict TEXT COLLATE "C" NOT NULL CHECK (verdict IN ('delivered', 'bounced', 'failed', 'retry')),
    fault TEXT COLLATE "C",
    reason TEXT COLLATE "C" NOT NULL,
    smtp_code BIGINT,
    enhanced_code TEXT COLLATE "C" NOT NULL,
    response TEXT COLLATE "C" NOT NULL,
    in_doubt BIGINT NOT NULL CHECK (in_doubt IN (0, 1)),
    PRIMARY KEY (account_id, message_id, recipient_id, started_at)
);

-- What workers know of the pools that are not simply open, so that an operator can see why mail waits.
CREATE TABLE pools (
    worker TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    state TEXT COLLATE "C" NOT NULL CHECK (state IN ('slowed', 'paused', 'blocked')),
    reason TEXT COLLATE "C" NOT NULL,
    until BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (worker, name)
);

-- Keys that sign for a domain (RFC 6376). The private key is encrypted with a key of the installation.
CREATE TABLE dkim_keys (
    account_id TEXT COLLATE "C" NOT NULL,
    domain_id TEXT COLLATE "C" NOT NULL,
    selector TEXT COLLATE "C" NOT NULL,
    private_key BYTEA NOT NULL,
    public_key BYTEA NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (account_id, domain_id, selector)
);

-- Addresses that do not exist: a recipient on the list is accepted and ends bounced without an attempt.
CREATE TABLE suppressions (
    account_id TEXT COLLATE "C" NOT NULL,
    email_key TEXT COLLATE "C" NOT NULL,
    source TEXT COLLATE "C" NOT NULL CHECK (source IN ('bounce', 'late_bounce', 'operator')),
    reason TEXT COLLATE "C" NOT NULL,
    message_id TEXT COLLATE "C",
    created_at BIGINT NOT NULL,
    PRIMARY KEY (account_id, email_key)
);

-- Reports that came back after a recipient was final (RFC 3464); the final state never changes.
CREATE TABLE late_bounces (
    account_id TEXT COLLATE "C" NOT NULL,
    message_id TEXT COLLATE "C" NOT NULL,
    recipient_id TEXT COLLATE "C" NOT NULL,
    received_at BIGINT NOT NULL,
    action TEXT COLLATE "C" NOT NULL,
    status TEXT COLLATE "C" NOT NULL,
    fault TEXT COLLATE "C" NOT NULL,
    response TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (account_id, message_id, recipient_id, received_at)
);
