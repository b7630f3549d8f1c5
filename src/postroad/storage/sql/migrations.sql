-- name: is_recorded
-- A row when this database has a table of migrations, none when it is new.
SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'schema_migrations';

-- name: create_table
-- The table of applied migrations.
CREATE TABLE schema_migrations (
    version INTEGER NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    compatible_from INTEGER NOT NULL
);

-- name: lock
-- One migrating process at a time: SQLite's write transaction is the lock.
SELECT 1;

-- name: version
-- The newest migration that was applied, the name of the first one, and where the data were moved; none in a new database.
SELECT version, (SELECT name FROM schema_migrations WHERE version = 1),
    (SELECT name FROM schema_migrations WHERE version = 0)
FROM schema_migrations ORDER BY version DESC LIMIT 1;

-- name: record
-- An applied migration, and the oldest schema version whose code works after it.
INSERT INTO schema_migrations (version, name, compatible_from) VALUES ($1, $2, $3);

-- name: incompatible
-- A newer migration after which code of this schema version does not work.
SELECT version FROM schema_migrations WHERE version > $1 AND compatible_from > $1 LIMIT 1;

-- name: forget_move
-- Remove the mark of a database whose data were moved: a migration with the number 0.
DELETE FROM schema_migrations WHERE version = 0;
