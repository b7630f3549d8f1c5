-- compatible from: 12
-- The name of the source address that an attempt was made from; empty where the system chose it.
ALTER TABLE attempts ADD COLUMN source TEXT COLLATE "C" NOT NULL DEFAULT '';

-- What holds for source addresses at run time, on all hosts: paused, draining or warming. A pause may be for one provider;
-- otherwise `provider` is empty.
CREATE TABLE source_states (
    source TEXT COLLATE "C" NOT NULL,
    provider TEXT COLLATE "C" NOT NULL,
    state TEXT COLLATE "C" NOT NULL CHECK (state IN ('paused', 'draining', 'warming')),
    reason TEXT COLLATE "C" NOT NULL,
    set_by TEXT COLLATE "C" NOT NULL,
    set_at BIGINT NOT NULL,
    until BIGINT,
    PRIMARY KEY (source, provider, state)
);

-- Attempts by source address, mailbox provider and day (UTC, days since 1970), and how they ended.
CREATE TABLE source_counts (
    source TEXT COLLATE "C" NOT NULL,
    provider TEXT COLLATE "C" NOT NULL,
    day BIGINT NOT NULL,
    delivered BIGINT NOT NULL,
    deferred BIGINT NOT NULL,
    refused BIGINT NOT NULL,
    blocked BIGINT NOT NULL,
    PRIMARY KEY (source, provider, day)
);
CREATE INDEX source_counts_over ON source_counts (day);
