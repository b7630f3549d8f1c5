-- compatible from: 12
-- Since when a person operates the installation; none for all others.
ALTER TABLE users ADD COLUMN operator_since BIGINT;
-- The person who created a key: a key of an operator is none once that person is not.
ALTER TABLE api_keys ADD COLUMN created_by TEXT COLLATE "C";
