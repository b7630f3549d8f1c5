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
