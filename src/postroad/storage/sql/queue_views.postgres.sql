-- name: domains
-- The domains with the most recipients in the queue.
SELECT split_part(queue_key, ' ', 1) AS domain, COUNT(*) AS recipients
FROM queue
WHERE (CAST($1 AS TEXT) IS NULL OR account_id = $1)
    AND (CAST($2 AS TEXT) IS NULL OR message_id = $2)
    AND (CAST($3 AS TEXT) IS NULL OR recipient_id = $3)
    AND (CAST($4 AS TEXT) IS NULL
        OR substr(queue_key, 1, length(CAST($4 AS TEXT)) + 1) = CAST($4 AS TEXT) || ' ')
GROUP BY domain ORDER BY recipients DESC, domain LIMIT $5;

-- name: make_ready
-- Make waiting rows of an account ready, up to a limit, without a step of the retry schedule; not scheduled ones. Rows
-- that are being changed are skipped. They are found by their key, as a range that any id is in if no message is named:
-- one plan serves all choices.
UPDATE queue SET ready = 1, due_at = $5, attempt_count = GREATEST(attempt_count - 1, 0)
WHERE (account_id, message_id, recipient_id) IN (
    SELECT account_id, message_id, recipient_id FROM queue
    WHERE ready + 0 = 0 AND worker IS NULL AND due_at <> queued_at
        AND account_id = $1 AND message_id >= COALESCE($2, '') AND message_id <= COALESCE($2, '~')
        AND (CAST($3 AS TEXT) IS NULL OR recipient_id = $3)
        AND (CAST($4 AS TEXT) IS NULL
        OR substr(queue_key, 1, length(CAST($4 AS TEXT)) + 1) = CAST($4 AS TEXT) || ' ')
    LIMIT $6
    FOR UPDATE SKIP LOCKED);

-- name: make_named_ready
-- The same for the given rows, as far as they are waiting, found by their key as in `queue.claim`. Rows that are being
-- changed are skipped.
UPDATE queue SET ready = 1, due_at = chosen.now, attempt_count = GREATEST(attempt_count - 1, 0)
FROM (
    SELECT one.account_id, one.message_id, one.recipient_id, wanted.now
    FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[]) AS wanted (account_id, message_id, recipient_id, now)
    JOIN queue AS one ON one.account_id = wanted.account_id AND one.message_id = wanted.message_id
        AND one.recipient_id = wanted.recipient_id
    WHERE one.ready + 0 = 0 AND one.worker IS NULL AND one.due_at <> one.queued_at
    FOR UPDATE OF one SKIP LOCKED) AS chosen
WHERE queue.account_id = chosen.account_id AND queue.message_id = chosen.message_id
    AND queue.recipient_id = chosen.recipient_id
RETURNING queue.recipient_id;

-- name: still_unleased
-- Those of the given rows that have no lease, locked until the transaction ends. Rows that are being claimed are
-- skipped.
SELECT queue.account_id, queue.message_id, queue.recipient_id, email_key
FROM unnest($1::text[], $2::text[], $3::text[]) AS wanted (account_id, message_id, recipient_id)
JOIN queue ON queue.account_id = wanted.account_id AND queue.message_id = wanted.message_id
    AND queue.recipient_id = wanted.recipient_id
WHERE worker IS NULL
FOR UPDATE OF queue SKIP LOCKED;

-- name: unattempted
-- The recipients of a message for which no attempt has begun, locked until the transaction ends. A lost lease may have
-- been an attempt. Rows that are being claimed are waited for.
SELECT queue.account_id, queue.message_id, recipient_id, queue.email_key FROM queue
JOIN recipients ON recipients.account_id = queue.account_id AND recipients.message_id = queue.message_id
    AND recipients.id = recipient_id
WHERE queue.account_id = $1 AND queue.message_id = $2 AND worker IS NULL AND lost_leases = 0
    AND recipients.attempt_count = 0
ORDER BY recipient_id
FOR UPDATE OF queue;
