-- compatible from: 12
-- Limits of an account that an operator sets: NULL is the setting, or no limit.
ALTER TABLE accounts ADD COLUMN request_rate INTEGER;
ALTER TABLE accounts ADD COLUMN recipients_per_day INTEGER;
