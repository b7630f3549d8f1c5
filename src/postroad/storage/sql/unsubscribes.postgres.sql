-- name: find
-- Those of these addresses that have left their list: one index lookup for each, however large the table.
SELECT stored.account_id, stored.email_key, stored.source, '', NULL::bigint, stored.message_id, stored.created_at,
    stored.list_name
FROM unnest($1::text[], $2::text[], $3::text[]) AS wanted (account_id, list_name, email_key)
CROSS JOIN LATERAL (
    SELECT * FROM unsubscribes WHERE account_id = wanted.account_id AND list_name = wanted.list_name
        AND email_key = wanted.email_key LIMIT 1) AS stored;

-- name: add
-- Add addresses to lists; those that are there already are neither changed nor returned.
INSERT INTO unsubscribes (account_id, list_name, email_key, source, message_id, created_at)
SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[])
ON CONFLICT (account_id, list_name, email_key) DO NOTHING
RETURNING account_id, email_key;

-- name: lists
-- The lists of an account that somebody has left: one index lookup for each, however many addresses it has.
WITH RECURSIVE names (list_name) AS (
    (SELECT list_name FROM unsubscribes WHERE account_id = $1 ORDER BY list_name LIMIT 1)
    UNION ALL
    SELECT later.list_name FROM names CROSS JOIN LATERAL (
        SELECT list_name FROM unsubscribes WHERE account_id = $1 AND unsubscribes.list_name > names.list_name
        ORDER BY list_name LIMIT 1) AS later)
SELECT list_name FROM names LIMIT $2;
