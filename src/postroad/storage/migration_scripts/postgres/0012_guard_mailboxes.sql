-- Reports that counted for the bounce guard, and on which day (days since 1970). A report has two keys, and each counts
-- once: its mailbox, an address without what its owner can vary, and its signature, as "dkim:" and a hash.
CREATE TABLE bounce_guard_reports (
    account_id TEXT COLLATE "C" NOT NULL,
    report_key TEXT COLLATE "C" NOT NULL,
    day BIGINT NOT NULL,
    PRIMARY KEY (account_id, report_key)
);
CREATE INDEX bounce_guard_reports_over ON bounce_guard_reports (day);
