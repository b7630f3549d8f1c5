-- The queue as operators see it and change it. `state` is ready, waiting (for its next attempt), scheduled (its sender's
-- time has not come: it is due when it was queued for), sending (under a lease) or held. $1 to $4 choose rows by account, message, recipient and domain where `chosen` is included; NULL chooses all.
-- `recipients.attempt_count` counts attempts; `queue.attempt_count` is the position in the retry schedule, which an attempt
-- on request does not change.

-- part: chosen
    (CAST($1 AS TEXT) IS NULL OR account_id = $1)
    AND (CAST($2 AS TEXT) IS NULL OR message_id = $2)
    AND (CAST($3 AS TEXT) IS NULL OR recipient_id = $3)
    AND (CAST($4 AS TEXT) IS NULL
        OR substr(queue_key, 1, length(CAST($4 AS TEXT)) + 1) = CAST($4 AS TEXT) || ' ')

-- part: state
    CASE WHEN worker IS NOT NULL THEN 'sending'
        WHEN ready = 0 AND due_at = queued_at THEN 'scheduled'
        WHEN EXISTS (
            SELECT 1 FROM holds WHERE released_at IS NULL AND holds.account_id IN ('', queue.account_id)
                AND (holds.domain = '' OR substr(queue.queue_key, 1, length(holds.domain) + 1) = holds.domain || ' ')) THEN 'held'
        WHEN ready = 1 THEN 'ready' ELSE 'waiting' END

-- part: last_attempt
LEFT JOIN attempts ON attempts.account_id = recipients.account_id AND attempts.message_id = recipients.message_id
    AND attempts.recipient_id = recipients.id AND attempts.started_at = (
        SELECT MAX(latest.started_at) FROM attempts AS latest
        WHERE latest.account_id = recipients.account_id AND latest.message_id = recipients.message_id
            AND latest.recipient_id = recipients.id)

-- name: page
-- Recipients of one state or of any, oldest first, each with the last reply of the destination and the provider queue,
-- enhanced code and reason of its last attempt.
SELECT chosen.account_id, chosen.message_id, chosen.recipient_id, queue_key, chosen.email, recipients.attempt_count, lost_leases,
    state, queued_at, due_at, worker, last_smtp_code, last_smtp_response,
    attempts.provider_queue, attempts.enhanced_code, attempts.reason
FROM (
    SELECT account_id, message_id, recipient_id, queue_key, email, lost_leases, queued_at, due_at, worker,
        -- include: state
        AS state
    FROM queue
    WHERE
    -- include: chosen
        AND (CAST($5 AS TEXT) IS NULL OR $5 =
        -- include: state
        )
    ORDER BY recipient_id LIMIT $6) AS chosen
JOIN recipients ON recipients.account_id = chosen.account_id AND recipients.message_id = chosen.message_id
    AND recipients.id = chosen.recipient_id
-- include: last_attempt
ORDER BY chosen.recipient_id;

-- name: of_message
-- The recipients of one message of an account, as above, found by their key.
SELECT queue.account_id, queue.message_id, queue.recipient_id, queue_key, queue.email, recipients.attempt_count, lost_leases,
    -- include: state
    , queued_at, due_at, worker, last_smtp_code, last_smtp_response,
    attempts.provider_queue, attempts.enhanced_code, attempts.reason
FROM queue
JOIN recipients ON recipients.account_id = queue.account_id AND recipients.message_id = queue.message_id
    AND recipients.id = queue.recipient_id
-- include: last_attempt
WHERE queue.account_id = $1 AND queue.message_id = $2
ORDER BY queue.recipient_id;

-- name: first
-- The oldest recipient of the account $1, with the same columns. It is chosen before the join, which would read all.
SELECT queue.account_id, queue.message_id, queue.recipient_id, queue_key, queue.email, recipients.attempt_count, lost_leases,
    -- include: state
    , queued_at, due_at, worker, last_smtp_code, last_smtp_response,
    attempts.provider_queue, attempts.enhanced_code, attempts.reason
FROM (SELECT * FROM queue WHERE account_id = $1 ORDER BY message_id, recipient_id LIMIT 1) AS queue
    JOIN recipients ON recipients.account_id = queue.account_id AND recipients.message_id = queue.message_id
        AND recipients.id = queue.recipient_id
    -- include: last_attempt
;

-- name: count
-- How many rows the account $1 has, counted up to a limit, along the primary key.
SELECT COUNT(*) FROM (SELECT 1 FROM queue WHERE account_id = $1 LIMIT $2) AS counted;

-- name: ahead
-- How many ready rows precede a message in each of its scheduled queues, counted up to a limit: index entries alone are
-- read, however long the queue is. Recipients of one message are claimed together, so the first one stands for all.
SELECT own.queue_key, (
    SELECT COUNT(*) FROM (
        SELECT 1 FROM queue WHERE ready = 1 AND queue.queue_key = own.queue_key AND queue.recipient_id < own.first_id
        LIMIT $3) AS counted)
FROM (
    SELECT queue_key, MIN(recipient_id) AS first_id FROM queue WHERE account_id = $1 AND message_id = $2
    GROUP BY queue_key) AS own;

-- name: counts
-- How many rows are in each state, when the first was queued, and when the first is due.
SELECT
    -- include: state
    AS state, COUNT(*), MIN(queued_at), MIN(due_at)
FROM queue
WHERE
    -- include: chosen
GROUP BY state;

-- name: domains
-- The domains with the most recipients in the queue.
SELECT substr(queue_key, 1, instr(queue_key, ' ') - 1) AS domain, COUNT(*) AS recipients
FROM queue
WHERE
    -- include: chosen
GROUP BY domain ORDER BY recipients DESC, domain LIMIT $5;

-- name: accounts
-- The accounts that have recipients in the queue.
SELECT DISTINCT account_id FROM queue
WHERE
    -- include: chosen
ORDER BY account_id;

-- name: make_ready
-- Make waiting rows ready, up to a limit, without a step of the retry schedule; not scheduled ones.
UPDATE queue SET ready = 1, due_at = $5, attempt_count = MAX(attempt_count - 1, 0)
WHERE (account_id, message_id, recipient_id) IN (
    SELECT account_id, message_id, recipient_id FROM queue
    WHERE ready = 0 AND worker IS NULL AND due_at <> queued_at AND
    -- include: chosen
    LIMIT $6);

-- name: make_named_ready
-- The same for the given rows, as far as they are waiting; found by their key.
UPDATE queue SET ready = 1, due_at = $4, attempt_count = MAX(attempt_count - 1, 0)
WHERE account_id = $1 AND message_id = $2 AND recipient_id = $3 AND ready = 0 AND worker IS NULL
    AND due_at <> queued_at
RETURNING recipient_id;

-- name: unleased
-- Rows without a lease, up to a limit.
SELECT account_id, message_id, recipient_id, email_key FROM queue
WHERE worker IS NULL AND
    -- include: chosen
LIMIT $5;

-- name: still_unleased
-- Those of the given rows that have no lease, locked until the transaction ends.
SELECT account_id, message_id, recipient_id, email_key FROM queue
WHERE account_id = $1 AND message_id = $2 AND recipient_id = $3 AND worker IS NULL;

-- name: unattempted
-- The recipients of a message for which no attempt has begun, locked until the transaction ends. A lost lease may have
-- been an attempt.
SELECT queue.account_id, queue.message_id, recipient_id, queue.email_key FROM queue
JOIN recipients ON recipients.account_id = queue.account_id AND recipients.message_id = queue.message_id
    AND recipients.id = recipient_id
WHERE queue.account_id = $1 AND queue.message_id = $2 AND worker IS NULL AND lost_leases = 0
    AND recipients.attempt_count = 0;

-- name: reschedule
-- Move the recipients of a message to another time, ready when it has come; they are locked.
UPDATE queue SET queued_at = $3, due_at = $3, ready = $4, expires_at = $5 WHERE account_id = $1 AND message_id = $2;

-- name: locate
-- The account and message of a recipient, whose message was created between two times.
SELECT account_id, message_id FROM recipients WHERE message_id >= $2 AND message_id < $3 AND id = $1 LIMIT 1;

-- name: totals
-- How many rows there are in each state and of each age: the number of the times $1 to $5, the newest first, that a row is
-- older than. With when the first was queued, and when the first is due.
SELECT
    -- include: state
    AS state, CASE WHEN queued_at > $1 THEN 0 WHEN queued_at > $2 THEN 1 WHEN queued_at > $3 THEN 2
        WHEN queued_at > $4 THEN 3 WHEN queued_at > $5 THEN 4 ELSE 5 END AS age,
    COUNT(*), MIN(queued_at), MIN(due_at)
FROM queue GROUP BY state, age;

-- name: largest_accounts
-- The accounts with the most recipients in the queue, along the primary key.
SELECT account_id, COUNT(*) AS recipients, MIN(queued_at) FROM queue GROUP BY account_id
ORDER BY recipients DESC, account_id LIMIT $1;

-- name: due_reasons
-- How many of the waiting recipients that are due next wait after an attempt with each reason.
SELECT COALESCE(attempts.provider_queue, ''), COALESCE(attempts.reason, ''), COUNT(*)
FROM (
    SELECT account_id, message_id, recipient_id FROM queue WHERE ready = 0 AND worker IS NULL ORDER BY due_at LIMIT $1
    ) AS chosen
JOIN recipients ON recipients.account_id = chosen.account_id AND recipients.message_id = chosen.message_id
    AND recipients.id = chosen.recipient_id
-- include: last_attempt
GROUP BY COALESCE(attempts.provider_queue, ''), COALESCE(attempts.reason, '')
ORDER BY COUNT(*) DESC;

-- name: walk
-- Rows after a key, up to an account, in order of their keys: those of the first $5 that are at the domain $6, if it is
-- given, and waiting for their next attempt, if $7 is 1. Leased ones are not chosen.
SELECT account_id, message_id, recipient_id, email_key FROM (
    SELECT account_id, message_id, recipient_id, email_key, queue_key, worker, ready, due_at, queued_at FROM queue
    WHERE (account_id, message_id, recipient_id) > ($1, $2, $3) AND account_id <= $4
    ORDER BY account_id, message_id, recipient_id LIMIT $5) AS walked
WHERE worker IS NULL AND (CAST($7 AS INTEGER) = 0 OR (ready = 0 AND due_at <> queued_at))
    AND ($6 = '' OR substr(queue_key, 1, length(CAST($6 AS TEXT)) + 1) = $6 || ' ');

-- name: walk_end
-- The row after $5 others; none when there are fewer.
SELECT account_id, message_id, recipient_id FROM queue
WHERE (account_id, message_id, recipient_id) > ($1, $2, $3) AND account_id <= $4
ORDER BY account_id, message_id, recipient_id LIMIT 1 OFFSET $5;

-- name: walk_page
-- The same rows with what `page` has of them, leased ones too, in one state or in any, up to a limit.
SELECT chosen.account_id, chosen.message_id, chosen.recipient_id, queue_key, chosen.email, recipients.attempt_count, lost_leases,
    state, queued_at, due_at, worker, last_smtp_code, last_smtp_response,
    attempts.provider_queue, attempts.enhanced_code, attempts.reason
FROM (
    SELECT account_id, message_id, recipient_id, queue_key, email, lost_leases, queued_at, due_at, worker,
        -- include: state
        AS state
    FROM (
        SELECT * FROM queue
        WHERE (account_id, message_id, recipient_id) > ($1, $2, $3) AND account_id <= $4
        ORDER BY account_id, message_id, recipient_id LIMIT $5) AS queue
    WHERE ($6 = '' OR substr(queue_key, 1, length(CAST($6 AS TEXT)) + 1) = $6 || ' ') AND ($7 = '' OR $7 =
        -- include: state
        )
    ORDER BY account_id, message_id, recipient_id LIMIT $8) AS chosen
JOIN recipients ON recipients.account_id = chosen.account_id AND recipients.message_id = chosen.message_id
    AND recipients.id = chosen.recipient_id
-- include: last_attempt
ORDER BY chosen.account_id, chosen.message_id, chosen.recipient_id;
