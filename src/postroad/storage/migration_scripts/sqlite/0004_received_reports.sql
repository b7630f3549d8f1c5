-- compatible from: 1

-- Reports about DMARC and TLS that receivers have sent to a domain's address for reports, on which day, whatever became of
-- them: no report counts twice, and a domain, network or reporter has a limit per day. `fingerprint` is that of the report.
CREATE TABLE received_reports (
    account_id TEXT NOT NULL,
    domain TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    day INTEGER NOT NULL,
    network TEXT NOT NULL,
    reporter TEXT NOT NULL,
    is_authenticated INTEGER NOT NULL,
    result TEXT NOT NULL,
    PRIMARY KEY (account_id, domain, fingerprint)
) STRICT, WITHOUT ROWID;
CREATE INDEX received_reports_by_domain ON received_reports (account_id, domain, day);
CREATE INDEX received_reports_by_day ON received_reports (day);

-- What DMARC reports count: messages of one day, reporter, source, From domain and result. The source is an address if the
-- messages passed, else a network. What reports say whose mail was not authenticated is kept apart.
CREATE TABLE dmarc_rows (
    account_id TEXT NOT NULL,
    domain TEXT NOT NULL,
    day INTEGER NOT NULL,
    is_authenticated INTEGER NOT NULL,
    reporter TEXT NOT NULL,
    source TEXT NOT NULL,
    header_from TEXT NOT NULL,
    disposition TEXT NOT NULL,
    dkim INTEGER NOT NULL,
    spf INTEGER NOT NULL,
    messages INTEGER NOT NULL,
    PRIMARY KEY (account_id, domain, day, is_authenticated, reporter, source, header_from, disposition, dkim, spf)
) STRICT, WITHOUT ROWID;
CREATE INDEX dmarc_rows_by_day ON dmarc_rows (day);

-- What TLS reports count: sessions of one day and reporter, by type of policy and of failure; empty for successes.
CREATE TABLE tls_report_rows (
    account_id TEXT NOT NULL,
    domain TEXT NOT NULL,
    day INTEGER NOT NULL,
    reporter TEXT NOT NULL,
    policy TEXT NOT NULL,
    failure TEXT NOT NULL,
    sessions INTEGER NOT NULL,
    PRIMARY KEY (account_id, domain, day, reporter, policy, failure)
) STRICT, WITHOUT ROWID;
CREATE INDEX tls_report_rows_by_day ON tls_report_rows (day);

-- Networks of which a domain's owner says that they are not theirs.
CREATE TABLE dismissed_networks (
    account_id TEXT NOT NULL,
    domain TEXT NOT NULL,
    network TEXT NOT NULL,
    PRIMARY KEY (account_id, domain, network)
) STRICT, WITHOUT ROWID;
