-- name: columns
-- The columns of every table with data, and their types, in order. What SQLite keeps for itself is none of them.
SELECT tables.name, columns.name, columns.type
FROM sqlite_schema AS tables JOIN pragma_table_info(tables.name) AS columns
WHERE tables.type = 'table' AND tables.name <> 'schema_migrations' AND substr(tables.name, 1, 7) <> 'sqlite_'
ORDER BY tables.name, columns.name;

-- name: lock
-- Let no process start on this database until the transaction ends. A SQLite file is locked as a whole.
SELECT 1;

-- name: has_accounts
-- A row if there is an account: the database is in use.
SELECT 1 FROM accounts LIMIT 1;
