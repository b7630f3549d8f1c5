-- name: lock
-- One migrating process at a time; the number is Postroad's own.
SELECT pg_advisory_xact_lock(7082511);

-- name: is_recorded
-- A row when this database has a record of migrations, nothing when it is new.
SELECT 1 WHERE to_regclass('schema_migrations') IS NOT NULL;
