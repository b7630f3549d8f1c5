-- compatible from: 12
-- The name of the source address that an attempt was made from; empty where the system chose it.
ALTER TABLE attempts ADD COLUMN source TEXT NOT NULL DEFAULT '';

-- What holds for source addresses at run time, on all hosts: paused, draining or warming. A pause may be for one provider;
-- otherwise `provider` is empty.
CREATE TABLE source_states (
    source TEXT NOT NULL,
    provider TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('paused', 'draining', 'warming')),
    reason TEXT NOT NULL,
    set_by TEXT NOT NULL,
    set_at INTEGER NOT NULL,
    until INTEGER,
    PRIMARY KEY (source, provider, state)
) STRICT, WITHOUT ROWID;

-- Attempts by source address, mailbox provider and day (UTC, days since 1970), and how they ended.
CREATE TABLE source_counts (
    source TEXT NOT NULL,
    provider TEXT NOT NULL,
    day INTEGER NOT NULL,
    delivered INTEGER NOT NULL,
    deferred INTEGER NOT NULL,
    refused INTEGER NOT NULL,
    blocked INTEGER NOT NULL,
    PRIMARY KEY (source, provider, day)
) STRICT, WITHOUT ROWID;
CREATE INDEX source_counts_over ON source_counts (day);
