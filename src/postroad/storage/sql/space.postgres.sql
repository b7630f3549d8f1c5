-- name: read
-- The bytes of the database. Which of them are free, only autovacuum knows.
SELECT pg_database_size(current_database()), NULL::BIGINT;

-- name: shrink
-- Nothing: autovacuum returns what it can, and reuses the rest.
SELECT 1 WHERE FALSE;
