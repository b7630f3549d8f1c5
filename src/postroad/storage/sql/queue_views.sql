-- What an operator sees of the queue, and does to it. `state` is ready, waiting (for its next attempt) or sending (under a
-- lease). In most of them $1 to $4 choose rows by account, message, recipient and domain; NULL chooses all. Attempts are
-- those of the recipient. The count of the queue is the place in the schedule, which an attempt that is asked for keeps.

-- name: page
-- Recipients of one state or of any, the oldest first, each with the destination's last words and the pool of its last
-- attempt.
SELECT chosen.account_id, chosen.message_id, recipient_id, lane, chosen.email, recipients.attempt_count, lost_leases,
    state, queued_at, due_at, worker, last_smtp_code, last_smtp_response,
    (SELECT pool FROM attempts
        WHERE attempts.account_id = chosen.account_id AND attempts.message_id = chosen.message_id
            AND attempts.recipient_id = chosen.recipient_id
        ORDER BY started_at DESC LIMIT 1)
FROM (
    SELECT account_id, message_id, recipient_id, lane, email, lost_leases, queued_at, due_at, worker,
        CASE WHEN ready = 1 THEN 'ready' WHEN worker IS NULL THEN 'waiting' ELSE 'sending' END AS state
    FROM queue
    WHERE (CAST($1 AS TEXT) IS NULL OR account_id = $1)
        AND (CAST($2 AS TEXT) IS NULL OR message_id = $2)
        AND (CAST($3 AS TEXT) IS NULL OR recipient_id = $3)
        AND (CAST($4 AS TEXT) IS NULL OR lane = CAST($4 AS TEXT) || ' ' || account_id)
        AND (CAST($5 AS TEXT) IS NULL
            OR CASE WHEN ready = 1 THEN 'ready' WHEN worker IS NULL THEN 'waiting' ELSE 'sending' END = $5)
    ORDER BY recipient_id LIMIT $6) AS chosen
JOIN recipients ON recipients.account_id = chosen.account_id AND recipients.message_id = chosen.message_id
    AND recipients.id = chosen.recipient_id
ORDER BY recipient_id;

-- name: of_message
-- The recipients of one message of an account, as above, found by their key.
SELECT queue.account_id, queue.message_id, recipient_id, lane, queue.email, recipients.attempt_count, lost_leases,
    CASE WHEN ready = 1 THEN 'ready' WHEN worker IS NULL THEN 'waiting' ELSE 'sending' END,
    queued_at, due_at, worker, last_smtp_code, last_smtp_response,
    (SELECT pool FROM attempts
        WHERE attempts.account_id = queue.account_id AND attempts.message_id = queue.message_id
            AND attempts.recipient_id = queue.recipient_id
        ORDER BY started_at DESC LIMIT 1)
FROM queue
JOIN recipients ON recipients.account_id = queue.account_id AND recipients.message_id = queue.message_id
    AND recipients.id = queue.recipient_id
WHERE queue.account_id = $1 AND queue.message_id = $2
ORDER BY recipient_id;

-- name: first
-- The oldest recipient of the account $1, with the same about it. It is chosen before the join, which would take all.
SELECT oldest.account_id, oldest.message_id, recipient_id, lane, oldest.email, recipients.attempt_count, lost_leases,
    CASE WHEN ready = 1 THEN 'ready' WHEN worker IS NULL THEN 'waiting' ELSE 'sending' END,
    queued_at, due_at, worker, last_smtp_code, last_smtp_response,
    (SELECT pool FROM attempts
        WHERE attempts.account_id = oldest.account_id AND attempts.message_id = oldest.message_id
            AND attempts.recipient_id = oldest.recipient_id
        ORDER BY started_at DESC LIMIT 1)
FROM (SELECT * FROM queue WHERE account_id = $1 ORDER BY message_id, recipient_id LIMIT 1) AS oldest
    JOIN recipients ON recipients.account_id = oldest.account_id AND recipients.message_id = oldest.message_id
        AND recipients.id = recipient_id;

-- name: counts
-- How many there are of each state, when the first of them was queued, and when it was due.
SELECT CASE WHEN ready = 1 THEN 'ready' WHEN worker IS NULL THEN 'waiting' ELSE 'sending' END AS state,
    COUNT(*), MIN(queued_at), MIN(due_at)
FROM queue
WHERE (CAST($1 AS TEXT) IS NULL OR account_id = $1)
    AND (CAST($2 AS TEXT) IS NULL OR message_id = $2)
    AND (CAST($3 AS TEXT) IS NULL OR recipient_id = $3)
    AND (CAST($4 AS TEXT) IS NULL OR lane = CAST($4 AS TEXT) || ' ' || account_id)
GROUP BY state;

-- name: domains
-- The domains with the most recipients in the queue.
SELECT substr(lane, 1, instr(lane, ' ') - 1) AS domain, COUNT(*) AS recipients
FROM queue
WHERE (CAST($1 AS TEXT) IS NULL OR account_id = $1)
    AND (CAST($2 AS TEXT) IS NULL OR message_id = $2)
    AND (CAST($3 AS TEXT) IS NULL OR recipient_id = $3)
    AND (CAST($4 AS TEXT) IS NULL OR lane = CAST($4 AS TEXT) || ' ' || account_id)
GROUP BY domain ORDER BY recipients DESC, domain LIMIT $5;

-- name: accounts
-- The accounts that have recipients in the queue.
SELECT DISTINCT account_id FROM queue
WHERE (CAST($1 AS TEXT) IS NULL OR account_id = $1)
    AND (CAST($2 AS TEXT) IS NULL OR message_id = $2)
    AND (CAST($3 AS TEXT) IS NULL OR recipient_id = $3)
    AND (CAST($4 AS TEXT) IS NULL OR lane = CAST($4 AS TEXT) || ' ' || account_id)
ORDER BY account_id;

-- name: make_ready
-- Let some of those that wait for their next attempt be tried now, without a step of the schedule.
UPDATE queue SET ready = 1, due_at = $5, attempt_count = MAX(attempt_count - 1, 0)
WHERE (account_id, message_id, recipient_id) IN (
    SELECT account_id, message_id, recipient_id FROM queue
    WHERE ready = 0 AND worker IS NULL
        AND (CAST($1 AS TEXT) IS NULL OR account_id = $1)
        AND (CAST($2 AS TEXT) IS NULL OR message_id = $2)
        AND (CAST($3 AS TEXT) IS NULL OR recipient_id = $3)
        AND (CAST($4 AS TEXT) IS NULL OR lane = CAST($4 AS TEXT) || ' ' || account_id)
    LIMIT $6);

-- name: make_named_ready
-- The same for the named ones, as far as they wait; found by their key.
UPDATE queue SET ready = 1, due_at = $4, attempt_count = MAX(attempt_count - 1, 0)
WHERE account_id = $1 AND message_id = $2 AND recipient_id = $3 AND ready = 0 AND worker IS NULL
RETURNING recipient_id;

-- name: free
-- Some of those that nobody holds.
SELECT account_id, message_id, recipient_id, email_key FROM queue
WHERE worker IS NULL
    AND (CAST($1 AS TEXT) IS NULL OR account_id = $1)
    AND (CAST($2 AS TEXT) IS NULL OR message_id = $2)
    AND (CAST($3 AS TEXT) IS NULL OR recipient_id = $3)
    AND (CAST($4 AS TEXT) IS NULL OR lane = CAST($4 AS TEXT) || ' ' || account_id)
LIMIT $5;

-- name: still_free
-- Of the named ones those that nobody holds, kept from others until the transaction ends.
SELECT account_id, message_id, recipient_id, email_key FROM queue
WHERE account_id = $1 AND message_id = $2 AND recipient_id = $3 AND worker IS NULL;

-- name: locate
-- The account and the message of a recipient, whose message was made between two times: one look into the index for each
-- account.
SELECT recipients.account_id, recipients.message_id FROM accounts CROSS JOIN recipients
WHERE recipients.account_id = accounts.id AND recipients.message_id >= $2 AND recipients.message_id < $3
    AND recipients.id = $1
LIMIT 1;
