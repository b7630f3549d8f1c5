-- What destinations require of TLS, and the results that are reported to them.

-- MTA-STS policies of destinations (RFC 8461), so that a restart or another host does not forget that a domain requires TLS.
-- `policy` is the text of the policy; times are microseconds since 1970.
CREATE TABLE mta_sts_policies (
    domain TEXT NOT NULL PRIMARY KEY,
    policy_id TEXT NOT NULL,
    policy TEXT NOT NULL,
    fetched_at INTEGER NOT NULL,
    valid_until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX mta_sts_policies_over ON mta_sts_policies (valid_until);
CREATE INDEX mta_sts_policies_by_age ON mta_sts_policies (fetched_at);

-- The reports about TLS that recipient domains may ask for (RFC 8460), by UTC day (days since 1970). `sent` are the URIs that have
-- got it, one on each line. A report is claimed by moving `due_at` ahead.
CREATE TABLE tls_reports (
    day INTEGER NOT NULL,
    domain TEXT NOT NULL,
    due_at INTEGER NOT NULL,
    attempt_count INTEGER NOT NULL,
    sent TEXT NOT NULL,
    PRIMARY KEY (day, domain)
) STRICT, WITHOUT ROWID;
CREATE INDEX tls_reports_due ON tls_reports (due_at);

-- What is reported: how many sessions had which result. `result` is JSON, and `fingerprint` its hash.
CREATE TABLE tls_results (
    day INTEGER NOT NULL,
    domain TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    result TEXT NOT NULL,
    sessions INTEGER NOT NULL,
    PRIMARY KEY (day, domain, fingerprint)
) STRICT, WITHOUT ROWID;
