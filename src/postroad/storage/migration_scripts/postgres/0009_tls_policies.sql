-- What destinations require of TLS, and the results that are reported to them.

-- MTA-STS policies of destinations (RFC 8461), so that a restart or another host does not forget that a domain requires TLS.
-- `policy` is the text of the policy; times are microseconds since 1970.
CREATE TABLE mta_sts_policies (
    domain TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    policy_id TEXT COLLATE "C" NOT NULL,
    policy TEXT COLLATE "C" NOT NULL,
    fetched_at BIGINT NOT NULL,
    valid_until BIGINT NOT NULL
);
CREATE INDEX mta_sts_policies_over ON mta_sts_policies (valid_until);
CREATE INDEX mta_sts_policies_by_age ON mta_sts_policies (fetched_at);

-- The reports about TLS that recipient domains may ask for (RFC 8460), by UTC day (days since 1970). `sent` are the URIs that have
-- got it, one on each line. A report is claimed by moving `due_at` ahead.
CREATE TABLE tls_reports (
    day BIGINT NOT NULL,
    domain TEXT COLLATE "C" NOT NULL,
    due_at BIGINT NOT NULL,
    attempt_count BIGINT NOT NULL,
    sent TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (day, domain)
);
CREATE INDEX tls_reports_due ON tls_reports (due_at);

-- What is reported: how many sessions had which result. `result` is JSON, and `fingerprint` its hash.
CREATE TABLE tls_results (
    day BIGINT NOT NULL,
    domain TEXT COLLATE "C" NOT NULL,
    fingerprint TEXT COLLATE "C" NOT NULL,
    result TEXT COLLATE "C" NOT NULL,
    sessions BIGINT NOT NULL,
    PRIMARY KEY (day, domain, fingerprint)
);
