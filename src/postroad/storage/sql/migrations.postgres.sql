-- name: lock
-- One migrating process at a time; the number is arbitrary, but always the same.
SELECT pg_advisory_xact_lock(7082511);

-- name: is_recorded
-- A row when this database has a table of migrations, none when it is new.
SELECT 1 WHERE to_regclass('schema_migrations') IS NOT NULL;
