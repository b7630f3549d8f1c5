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
