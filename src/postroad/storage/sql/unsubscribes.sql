-- name: find
-- One address of a list, if it has left it.
SELECT account_id, email_key, source, '', NULL, message_id, created_at, list_name FROM unsubscribes
WHERE account_id = $1 AND list_name = $2 AND email_key = $3;

-- name: add
-- Add addresses to lists; those that are there already are neither changed nor returned.
INSERT INTO unsubscribes (account_id, list_name, email_key, source, message_id, created_at)
VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (account_id, list_name, email_key) DO NOTHING
RETURNING account_id, email_key;

-- name: remove
-- Remove an address from a list.
DELETE FROM unsubscribes WHERE account_id = $1 AND list_name = $2 AND email_key = $3;

-- name: of_account
-- An account's addresses by list and address, after a cursor.
SELECT account_id, email_key, source, '', NULL, message_id, created_at, list_name FROM unsubscribes
WHERE account_id = $1 AND (list_name, email_key) > ($2, $3) ORDER BY list_name, email_key LIMIT $4;

-- name: of_list
-- Those of one list, after a cursor; NULL matches every source.
SELECT account_id, email_key, source, '', NULL, message_id, created_at, list_name FROM unsubscribes
WHERE account_id = $1 AND list_name = $2 AND email_key > $3 AND (CAST($5 AS TEXT) IS NULL OR source = $5)
ORDER BY email_key LIMIT $4;

-- name: lists
-- The lists of an account that somebody has left: one index lookup for each, however many addresses it has.
WITH RECURSIVE names (list_name) AS (
    SELECT MIN(list_name) FROM unsubscribes WHERE account_id = $1
    UNION ALL
    SELECT (SELECT MIN(later.list_name) FROM unsubscribes AS later
        WHERE later.account_id = $1 AND later.list_name > names.list_name)
    FROM names WHERE names.list_name IS NOT NULL LIMIT $2)
SELECT list_name FROM names WHERE list_name IS NOT NULL;
