-- compatible from: 1

-- Reports about DMARC and TLS that receivers have sent to a domain's address for reports, on which day, whatever became of
-- them: no report counts twice, and a domain, network or reporter has a limit per day. `fingerprint` is that of the report.
CREATE TABLE received_reports (
    account_id TEXT COLLATE "C" NOT NULL,
    domain TEXT COLLATE "C" NOT NULL,
    fingerprint TEXT COLLATE "C" NOT NULL,
    day BIGINT NOT NULL,
    network TEXT COLLATE "C" NOT NULL,
    reporter TEXT COLLATE "C" NOT NULL,
    is_authenticated BIGINT NOT NULL,
    result TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (account_id, domain, fingerprint)
);
CREATE INDEX received_reports_by_domain ON received_reports (account_id, domain, day);
CREATE INDEX received_reports_by_day ON received_reports (day);

-- What DMARC reports count: messages of one day, reporter, source, From domain and result. The source is an address if the
-- messages passed, else a network. What reports say whose mail was not authenticated is kept apart.
CREATE TABLE dmarc_rows (
    account_id TEXT COLLATE "C" NOT NULL,
    domain TEXT COLLATE "C" NOT NULL,
    day BIGINT NOT NULL,
    is_authenticated BIGINT NOT NULL,
    reporter TEXT COLLATE "C" NOT NULL,
    source TEXT COLLATE "C" NOT NULL,
    header_from TEXT COLLATE "C" NOT NULL,
    disposition TEXT COLLATE "C" NOT NULL,
    dkim BIGINT NOT NULL,
    spf BIGINT NOT NULL,
    messages BIGINT NOT NULL,
    PRIMARY KEY (account_id, domain, day, is_authenticated, reporter, source, header_from, disposition, dkim, spf)
);
CREATE INDEX dmarc_rows_by_day ON dmarc_rows (day);

-- What TLS reports count: sessions of one day and reporter, by type of policy and of failure; empty for successes.
CREATE TABLE tls_report_rows (
    account_id TEXT COLLATE "C" NOT NULL,
    domain TEXT COLLATE "C" NOT NULL,
    day BIGINT NOT NULL,
    reporter TEXT COLLATE "C" NOT NULL,
    policy TEXT COLLATE "C" NOT NULL,
    failure TEXT COLLATE "C" NOT NULL,
    sessions BIGINT NOT NULL,
    PRIMARY KEY (account_id, domain, day, reporter, policy, failure)
);
CREATE INDEX tls_report_rows_by_day ON tls_report_rows (day);

-- Networks of which a domain's owner says that they are not theirs.
CREATE TABLE dismissed_networks (
    account_id TEXT COLLATE "C" NOT NULL,
    domain TEXT COLLATE "C" NOT NULL,
    network TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (account_id, domain, network)
);
