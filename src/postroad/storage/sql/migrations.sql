-- name: is_recorded
-- A row when this database has a table of migrations, none when it is new.
SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'schema_migrations';

-- name: create_table
-- The table of applied migrations.
CREATE TABLE schema_migrations (
    version INTEGER NOT NULL PRIMARY KEY,
    name TEXT NOT NULL
);

-- name: lock
-- One migrating process at a time: SQLite's write transaction is the lock.
SELECT 1;

-- name: version
-- The newest migration that was applied; 0 for a new database.
SELECT COALESCE(MAX(version), 0) FROM schema_migrations;

-- name: record
-- An applied migration.
INSERT INTO schema_migrations (version, name) VALUES ($1, $2);

-- name: record_compatibility
-- The oldest schema version whose code works after a migration.
UPDATE schema_migrations SET compatible_from = $2 WHERE version = $1;

-- name: incompatible
-- A newer migration after which code of this schema version does not work, or of which nothing is known.
SELECT version FROM schema_migrations
WHERE version > $1 AND (compatible_from IS NULL OR compatible_from > $1) ORDER BY version LIMIT 1;
