-- name: of_table
-- The partitions of a table and the ids before which they end. SQLite has none.
SELECT '', '' WHERE $1 IS NULL;

-- name: bound
-- Refuse rows at or after a bound in the newest partitions of tables; NULL ends this.
SELECT $1, $2;

-- name: is_bounded
-- A row if a newest partition refuses rows at or after a bound.
SELECT 1 WHERE $1 IS NULL;

-- name: late
-- The recipients and bytes of the messages before a bound that have not ended, or ended after a time.
SELECT $1, $2;

-- name: expire
-- Drop the partitions of tables before a bound, except messages that have not ended or ended after a time.
SELECT $1, $2, $3;

-- name: is_permitted
-- Whether our role may begin and drop partitions.
SELECT 0;
