-- The guards: how fast and how much an account may send, how much of it may bounce, what DNS says of its domains, and how
-- long its mail is kept.

-- Who has suspended an account, and when: what the bounce guard does can be lifted by a cool-down as well.
ALTER TABLE accounts ADD COLUMN suspended_by TEXT CHECK (suspended_by IN ('operator', 'bounce_guard'));
ALTER TABLE accounts ADD COLUMN suspended_at INTEGER;
UPDATE accounts SET suspended_by = 'operator' WHERE status = 'suspended';
CREATE INDEX accounts_suspended ON accounts (suspended_at) WHERE suspended_by = 'bounce_guard';

-- One bucket for each SMTP credential (GCRA): when it will be full again, and the latest time that a host has seen. Written
-- when mail is accepted, under the account's lock, so that all processes and hosts count as one. Few rows that change often: no index but its key.
CREATE TABLE rates (
    credential_id TEXT NOT NULL PRIMARY KEY,
    account_id TEXT NOT NULL,
    full_at INTEGER NOT NULL,
    seen_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- `warm`: the operator says that it needs no warm-up. `verified_by` is whose word counts: `dns` is asked again and again,
-- and `failing_since` is when it began to say no. `check_at` is when it is asked next, `asked_at` when somebody last had it
-- asked at once.
ALTER TABLE domains ADD COLUMN warm INTEGER NOT NULL DEFAULT 0 CHECK (warm IN (0, 1));
ALTER TABLE domains ADD COLUMN verified_by TEXT CHECK (verified_by IN ('operator', 'dns'));
ALTER TABLE domains ADD COLUMN failing_since INTEGER;
ALTER TABLE domains ADD COLUMN check_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE domains ADD COLUMN asked_at INTEGER NOT NULL DEFAULT 0;
-- Those that send already go on as they did.
UPDATE domains SET verified_by = 'operator', warm = 1 WHERE verified_at IS NOT NULL;
CREATE INDEX domains_to_check ON domains (check_at);

-- What DNS last said of each record that a domain should have; `found` are the records of the same kind that stand there.
CREATE TABLE domain_checks (
    account_id TEXT NOT NULL,
    domain_id TEXT NOT NULL,
    purpose TEXT NOT NULL CHECK (purpose IN ('dkim', 'spf', 'return_path', 'dmarc')),
    state TEXT NOT NULL CHECK (state IN ('ok', 'missing', 'wrong', 'unknown')),
    detail TEXT NOT NULL,
    found TEXT NOT NULL,
    checked_at INTEGER NOT NULL,
    PRIMARY KEY (account_id, domain_id, purpose)
) STRICT, WITHOUT ROWID;

-- How much a young domain has sent on its last day (days since 1970), in recipients, and how far it has come: `step` is the
-- place of that day's cap in the schedule. By its name: whoever removes it and adds it again goes on where it was.
CREATE TABLE warmups (
    account_id TEXT NOT NULL,
    domain TEXT NOT NULL,
    day INTEGER NOT NULL,
    step INTEGER NOT NULL,
    used INTEGER NOT NULL,
    PRIMARY KEY (account_id, domain)
) STRICT, WITHOUT ROWID;

-- What the bounce guard counts, by day: recipients that became final after an attempt, those whose address does not exist, and
-- complaints.
CREATE TABLE sending_days (
    account_id TEXT NOT NULL,
    day INTEGER NOT NULL,
    recipients INTEGER NOT NULL,
    bounces INTEGER NOT NULL,
    complaints INTEGER NOT NULL,
    PRIMARY KEY (account_id, day)
) STRICT, WITHOUT ROWID;
CREATE INDEX sending_days_over ON sending_days (day);

-- More ways onto the list of suppressed addresses, and the code of the reply that caused it.
CREATE TABLE new_suppressions (
    account_id TEXT NOT NULL,
    email_key TEXT NOT NULL,
    source TEXT NOT NULL CHECK (source IN ('bounce', 'late_bounce', 'complaint', 'operator', 'account', 'import')),
    reason TEXT NOT NULL,
    smtp_code INTEGER,
    message_id TEXT,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (account_id, email_key)
) STRICT, WITHOUT ROWID;
INSERT INTO new_suppressions SELECT account_id, email_key, source, reason, NULL, message_id, created_at FROM suppressions;
DROP TABLE suppressions;
ALTER TABLE new_suppressions RENAME TO suppressions;

-- When a message's last recipient became final, and whether its body is still kept: bodies go before the rest does. A message
-- is in one of the two indexes at a time. The schedule of attempts takes a day, so two are enough for what ended before.
ALTER TABLE messages ADD COLUMN ended_at INTEGER;
ALTER TABLE messages ADD COLUMN has_body INTEGER NOT NULL DEFAULT 1 CHECK (has_body IN (0, 1));
UPDATE messages SET ended_at = created_at + 172800000000 WHERE status <> 'queued';
CREATE INDEX messages_with_body ON messages (ended_at) WHERE ended_at IS NOT NULL AND has_body = 1;
CREATE INDEX messages_without_body ON messages (ended_at) WHERE ended_at IS NOT NULL AND has_body = 0;
-- The tags of a message that goes are found by it.
CREATE INDEX message_tags_of_message ON message_tags (account_id, message_id);
