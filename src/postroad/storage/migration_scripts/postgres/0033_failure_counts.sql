-- compatible from: 12
-- Recipients that bounced or failed, by the hour (UTC) of acceptance, mailbox provider and reason: `hourly_counts` in more
-- detail. Written with the result, and only for those.
CREATE TABLE failure_counts (
    account_id TEXT COLLATE "C" NOT NULL,
    hour BIGINT NOT NULL,
    provider TEXT COLLATE "C" NOT NULL,
    reason TEXT COLLATE "C" NOT NULL,
    bounced BIGINT NOT NULL,
    failed BIGINT NOT NULL,
    PRIMARY KEY (account_id, hour, provider, reason)
);
CREATE INDEX failure_counts_by_hour ON failure_counts (hour);
