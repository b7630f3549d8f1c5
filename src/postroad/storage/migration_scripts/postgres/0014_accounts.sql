-- compatible from: 12
-- Accounts with unique names, that can be closed and removed, and that need no credits.
-- An older process takes a closed account for a suspended one. It cannot record results of mail that was not charged:
-- switch credits off when all hosts run this version.

-- The name as it is compared; NULL for accounts of older versions, whose names may be duplicates.
ALTER TABLE accounts ADD COLUMN name_key TEXT COLLATE "C";
ALTER TABLE accounts ADD COLUMN closed_at BIGINT;
-- The data of a removed account is being deleted, and the account after it.
ALTER TABLE accounts ADD COLUMN removed_at BIGINT;
-- The account sends without credits.
ALTER TABLE accounts ADD COLUMN unlimited BIGINT NOT NULL DEFAULT 0 CHECK (unlimited IN (0, 1));
-- Some mail of the account was not charged: only then a result has to look it up.
ALTER TABLE accounts ADD COLUMN has_uncharged BIGINT NOT NULL DEFAULT 0 CHECK (has_uncharged IN (0, 1));
CREATE UNIQUE INDEX accounts_by_name ON accounts (name_key);
CREATE INDEX accounts_removed ON accounts (removed_at) WHERE removed_at IS NOT NULL;
