-- name: of_table
-- The partitions of a table and the ids before which they end: NULL for the newest one, which has no end. From the
-- catalog, which a role may read that may not call the functions.
SELECT relname::TEXT, substring(pg_get_expr(relpartbound, pg_class.oid) FROM 'TO \(''(.*)''\)')
FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid WHERE inhparent = $1::TEXT::REGCLASS;

-- name: bound
-- Refuse rows at or after a bound in the newest partitions of tables; NULL ends this.
SELECT bound_mail_partitions($1, $2);

-- name: is_bounded
-- A row if a newest partition refuses rows at or after a bound.
SELECT 1 FROM pg_constraint JOIN pg_inherits ON inhrelid = conrelid
WHERE conname = 'partition_bound' AND inhparent = ANY ($1::TEXT[]::REGCLASS[]) LIMIT 1;

-- name: late
-- The recipients and bytes of the messages before a bound that have not ended, or ended after a time.
SELECT coalesce(sum(recipient_count), 0)::BIGINT, coalesce(sum(size), 0)::BIGINT FROM late_messages($1, $2)
JOIN messages ON messages.account_id = late_account AND messages.id = late_id;

-- name: expire
-- Drop the partitions of tables before a bound, except messages that have not ended or ended after a time.
SELECT expire_mail_partitions($1, $2, $3);

-- name: is_permitted
-- Whether our role may call the functions.
SELECT has_function_privilege('expire_mail_partitions(TEXT[], TEXT, BIGINT)', 'EXECUTE');
