-- name: columns
-- The columns of every table with data, and their types in the words of SQLite, in order. Partitions belong to theirs.
SELECT relname::TEXT, attname::TEXT, CASE format_type(atttypid, atttypmod)
    WHEN 'text' THEN 'TEXT' WHEN 'bigint' THEN 'INTEGER' WHEN 'bytea' THEN 'BLOB' ELSE format_type(atttypid, atttypmod) END
FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid
WHERE relnamespace = current_schema()::REGNAMESPACE AND relkind IN ('r', 'p') AND NOT relispartition
    AND relname <> 'schema_migrations' AND attnum > 0 AND NOT attisdropped
ORDER BY relname COLLATE "C", attname COLLATE "C";

-- name: lock
-- Let no process start on this database until the transaction ends: each reads the fingerprint of the key first.
LOCK TABLE installation_key, accounts IN ACCESS EXCLUSIVE MODE;
