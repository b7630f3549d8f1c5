-- What the operator holds back. '' as an account or a domain stands for all.

-- part: held
    ($1 = '' OR account_id = $1)
    AND ($2 = '' OR substr(queue_key, 1, length(CAST($2 AS TEXT)) + 1) = $2 || ' ')
    AND queued_at < $3

-- name: listed
-- All holds, in force and released.
SELECT account_id, domain, reason, held_at, released_at, in_doubt_before FROM holds ORDER BY held_at, account_id, domain;

-- name: put
-- Hold. What is held already stays as it is, unless a restore puts it in doubt.
INSERT INTO holds (account_id, domain, reason, held_at, released_at, in_doubt_before) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (account_id, domain) DO UPDATE
SET reason = excluded.reason, held_at = excluded.held_at, released_at = excluded.released_at,
    in_doubt_before = excluded.in_doubt_before
WHERE holds.released_at IS NOT NULL OR excluded.in_doubt_before IS NOT NULL;

-- name: release
-- Release what is held.
UPDATE holds SET released_at = $3 WHERE account_id = $1 AND domain = $2 AND released_at IS NULL;

-- name: sweep
-- Holds that were released long ago.
DELETE FROM holds WHERE released_at < $1;

-- name: counts
-- How many recipients of each scheduled queue, queued before a time, a hold covers.
SELECT queue_key, COUNT(*) FROM queue
WHERE
    -- include: held
GROUP BY queue_key ORDER BY COUNT(*) DESC, queue_key;

-- name: recipients
-- The same recipients, after a key and up to a limit.
SELECT account_id, message_id, recipient_id, email, queued_at FROM queue
WHERE
    -- include: held
    AND (account_id, message_id, recipient_id) > ($4, $5, $6)
ORDER BY account_id, message_id, recipient_id LIMIT $7;

-- name: newest_message_at
-- When the newest message was accepted.
SELECT MAX(created_at) FROM messages;
