-- name: insert
-- The recipients of accepted messages, ready at once.
INSERT INTO queue (account_id, message_id, recipient_id, lane, email, email_key, size, attempt_count, lost_leases, ready,
    queued_at, due_at)
SELECT account_id, message_id, recipient_id, lane, email, email_key, size, 0, 0, 1, queued_at, queued_at
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[], $8::bigint[])
    AS new (account_id, message_id, recipient_id, lane, email, email_key, size, queued_at);

-- name: promote
-- Make ready what is due, some at a time. Whoever let a lease run out is forgotten, and that it happened is not.
UPDATE queue SET ready = 1, lost_leases = lost_leases + (worker IS NOT NULL)::int, worker = NULL
WHERE (account_id, message_id, recipient_id) IN (
    SELECT account_id, message_id, recipient_id FROM queue
    WHERE ready = 0 AND due_at <= $1 AND (worker IS NULL OR due_at <= $3) ORDER BY due_at LIMIT $2
    FOR UPDATE SKIP LOCKED);

-- name: lanes
-- Lanes with ready rows, from one name on: one look into the index for each, however many rows it has.
WITH RECURSIVE lanes (lane) AS (
    (SELECT lane FROM queue WHERE ready = 1 AND lane > $1 ORDER BY lane LIMIT 1)
    UNION ALL
    SELECT following.lane FROM lanes CROSS JOIN LATERAL (
        SELECT queue.lane FROM queue WHERE ready = 1 AND queue.lane > lanes.lane ORDER BY queue.lane LIMIT 1) AS following)
SELECT lane FROM lanes LIMIT $2;

-- name: claim
-- Take the oldest ready rows of a lane under a lease, as far as they were queued before a time, and with them the other
-- recipients of the same messages. Those are found by their key (the sum and the empty text leave no other way): a lane may
-- be long, and a plan that was made while it was short would walk through all of it for each message. What another host is
-- taking is passed over.
UPDATE queue SET ready = 0, due_at = chosen.lease_until, worker = chosen.worker
FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::text[], $5::bigint[])
    AS wanted (lane, most, lease_until, worker, before)
CROSS JOIN LATERAL (
    WITH oldest AS MATERIALIZED (
        SELECT account_id, message_id FROM queue
        WHERE ready = 1 AND lane = wanted.lane AND queued_at <= wanted.before
        ORDER BY recipient_id LIMIT wanted.most
        FOR UPDATE SKIP LOCKED)
    SELECT one.account_id, one.message_id, one.recipient_id, wanted.lease_until, wanted.worker
    FROM (SELECT DISTINCT account_id, message_id FROM oldest) AS message
    JOIN queue AS one ON one.account_id = message.account_id AND one.message_id = message.message_id
    WHERE one.ready + 0 = 1 AND one.lane || '' = wanted.lane
    FOR UPDATE OF one SKIP LOCKED) AS chosen
WHERE queue.account_id = chosen.account_id AND queue.message_id = chosen.message_id
    AND queue.recipient_id = chosen.recipient_id
RETURNING queue.account_id, queue.message_id, queue.recipient_id, queue.lane, email, email_key, size, attempt_count,
    lost_leases, queued_at;

-- name: extend
-- Hold on to what is claimed, as far as it still is. What is being recorded at this moment is passed over: waiting for it,
-- in another order of rows, would be a dead lock.
UPDATE queue SET due_at = chosen.lease_until
FROM (
    SELECT one.account_id, one.message_id, one.recipient_id, held.lease_until
    FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::text[])
        AS held (account_id, message_id, recipient_id, lease_until, worker)
    JOIN queue AS one ON one.account_id = held.account_id AND one.message_id = held.message_id
        AND one.recipient_id = held.recipient_id AND one.worker = held.worker
    FOR UPDATE OF one SKIP LOCKED) AS chosen
WHERE queue.account_id = chosen.account_id AND queue.message_id = chosen.message_id
    AND queue.recipient_id = chosen.recipient_id
RETURNING queue.account_id, queue.message_id, queue.recipient_id;

-- name: hand_back
-- Let go of what is claimed, at once.
UPDATE queue SET ready = 1, due_at = held.now, worker = NULL
FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::text[])
    AS held (account_id, message_id, recipient_id, now, worker)
WHERE queue.account_id = held.account_id AND queue.message_id = held.message_id
    AND queue.recipient_id = held.recipient_id AND queue.worker = held.worker;

-- name: postpone
-- Wait for the next attempt; only by the worker that holds the lease.
UPDATE queue SET ready = 0, due_at = held.due_at, attempt_count = attempt_count + 1, lost_leases = 0, worker = NULL
FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::text[])
    AS held (account_id, message_id, recipient_id, due_at, worker)
WHERE queue.account_id = held.account_id AND queue.message_id = held.message_id
    AND queue.recipient_id = held.recipient_id AND queue.worker = held.worker
RETURNING queue.account_id, queue.message_id, queue.recipient_id;

-- name: remove
-- Recipients that are final.
DELETE FROM queue USING unnest($1::text[], $2::text[], $3::text[]) AS final (account_id, message_id, recipient_id)
WHERE queue.account_id = final.account_id AND queue.message_id = final.message_id
    AND queue.recipient_id = final.recipient_id;
