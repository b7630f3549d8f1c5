-- compatible from: 12
-- Limits of API keys: names and networks are words joined by a space, none mean no limit.
ALTER TABLE api_keys ADD COLUMN domains TEXT NOT NULL DEFAULT '';
ALTER TABLE api_keys ADD COLUMN networks TEXT NOT NULL DEFAULT '';
ALTER TABLE api_keys ADD COLUMN templates TEXT NOT NULL DEFAULT '';
ALTER TABLE api_keys ADD COLUMN recipients_per_day INTEGER;
ALTER TABLE api_keys ADD COLUMN credit_budget INTEGER;
ALTER TABLE api_keys ADD COLUMN expires_at INTEGER;

-- What keys with a limit have sent; written under the lock of the account. A table of its own, because the time of the last use is
-- written into the other without that lock.
CREATE TABLE api_key_usage (
    key_id TEXT NOT NULL PRIMARY KEY,
    account_id TEXT NOT NULL,
    day INTEGER NOT NULL,
    recipients INTEGER NOT NULL,
    credits INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX api_key_usage_by_account ON api_key_usage (account_id);
