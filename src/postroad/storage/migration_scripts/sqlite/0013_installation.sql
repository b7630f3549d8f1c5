-- compatible from: 12
-- What the database knows about the installation as a whole.

-- For each migration from here on: the oldest schema version whose code can work with the schema that it makes.
ALTER TABLE schema_migrations ADD COLUMN compatible_from INTEGER;

-- One row once a process with the installation key has opened the database. The fingerprint is derived from the key and
-- says nothing about it.
CREATE TABLE installation_key (
    only_row INTEGER NOT NULL PRIMARY KEY CHECK (only_row = 1),
    fingerprint BLOB NOT NULL
) STRICT, WITHOUT ROWID;

-- Keys that `postroad key rotate` replaced, encrypted with the current one: what they signed is accepted for a while.
CREATE TABLE previous_keys (
    fingerprint BLOB NOT NULL PRIMARY KEY,
    installation_key BLOB NOT NULL,
    replaced_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
