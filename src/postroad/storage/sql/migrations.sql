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
