-- compatible from: 12
-- Limits of API keys: names and networks are words joined by a space, none mean no limit.
ALTER TABLE api_keys ADD COLUMN domains TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE api_keys ADD COLUMN networks TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE api_keys ADD COLUMN templates TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE api_keys ADD COLUMN recipients_per_day BIGINT;
ALTER TABLE api_keys ADD COLUMN credit_budget BIGINT;
ALTER TABLE api_keys ADD COLUMN expires_at BIGINT;

-- What keys with a limit have sent; written under the lock of the account. A table of its own, because the time of the last use is
-- written into the other without that lock.
CREATE TABLE api_key_usage (
    key_id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    account_id TEXT COLLATE "C" NOT NULL,
    day BIGINT NOT NULL,
    recipients BIGINT NOT NULL,
    credits BIGINT NOT NULL
);
CREATE INDEX api_key_usage_by_account ON api_key_usage (account_id);
