-- compatible from: 12
-- Recipients that bounced or failed, by the hour (UTC) of acceptance, mailbox provider and reason: `hourly_counts` in more
-- detail. Written with the result, and only for those.
CREATE TABLE failure_counts (
    account_id TEXT NOT NULL,
    hour INTEGER NOT NULL,
    provider TEXT NOT NULL,
    reason TEXT NOT NULL,
    bounced INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    PRIMARY KEY (account_id, hour, provider, reason)
) STRICT, WITHOUT ROWID;
CREATE INDEX failure_counts_by_hour ON failure_counts (hour);
