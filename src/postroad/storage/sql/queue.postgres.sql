-- part: with_their_messages
        ORDER BY recipient_id LIMIT wanted.most
        FOR UPDATE SKIP LOCKED)
    SELECT one.account_id, one.message_id, one.recipient_id, wanted.lease_until, wanted.worker
    FROM (SELECT DISTINCT account_id, message_id FROM oldest) AS message
    JOIN queue AS one ON one.account_id = message.account_id AND one.message_id = message.message_id
    WHERE one.ready + 0 = 1 AND one.queue_key || '' = wanted.queue_key
    FOR UPDATE OF one SKIP LOCKED) AS chosen
WHERE queue.account_id = chosen.account_id AND queue.message_id = chosen.message_id
    AND queue.recipient_id = chosen.recipient_id
RETURNING queue.account_id, queue.message_id, queue.recipient_id, queue.queue_key, email, email_key, size, attempt_count,
    lost_leases, queued_at, expires_at, list_name;

-- name: insert
-- The recipients of accepted messages, ready unless they are due later.
INSERT INTO queue (account_id, message_id, recipient_id, queue_key, email, email_key, size, attempt_count, lost_leases,
    queued_at, ready, due_at, expires_at, urgent_key, list_name)
SELECT account_id, message_id, recipient_id, queue_key, email, email_key, size, 0, 0, queued_at, ready, due_at, expires_at,
    urgent_key, list_name
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[], $8::bigint[],
    $9::bigint[], $10::bigint[], $11::bigint[], $12::text[], $13::text[])
    AS new (account_id, message_id, recipient_id, queue_key, email, email_key, size, queued_at, ready, due_at, expires_at,
        urgent_key, list_name);

-- name: promote
-- Make due rows ready, up to a limit. `lost_leases` counts the leases that expired.
UPDATE queue SET ready = 1, lost_leases = lost_leases + (worker IS NOT NULL)::int, worker = NULL
WHERE (account_id, message_id, recipient_id) IN (
    SELECT account_id, message_id, recipient_id FROM queue
    WHERE ready = 0 AND due_at <= $1 AND (worker IS NULL OR due_at <= $3) ORDER BY due_at LIMIT $2
    FOR UPDATE SKIP LOCKED);

-- name: queue_keys
-- Keys of scheduled queues with ready rows, after a key: one index lookup for each, however many rows it has.
WITH RECURSIVE keys (queue_key) AS (
    (SELECT queue_key FROM queue WHERE ready = 1 AND queue_key > $1 ORDER BY queue_key LIMIT 1)
    UNION ALL
    SELECT following.queue_key FROM keys CROSS JOIN LATERAL (
        SELECT queue.queue_key FROM queue WHERE ready = 1 AND queue.queue_key > keys.queue_key
        ORDER BY queue.queue_key LIMIT 1) AS following)
SELECT queue_key FROM keys LIMIT $2;

-- name: urgent_keys
-- The same for urgent rows.
WITH RECURSIVE keys (queue_key) AS (
    (SELECT urgent_key FROM queue WHERE ready = 1 AND urgent_key > $1 ORDER BY urgent_key LIMIT 1)
    UNION ALL
    SELECT following.urgent_key FROM keys CROSS JOIN LATERAL (
        SELECT queue.urgent_key FROM queue WHERE ready = 1 AND queue.urgent_key > keys.queue_key
        ORDER BY queue.urgent_key LIMIT 1) AS following)
SELECT queue_key FROM keys LIMIT $2;

-- name: claim_urgent
-- Lease the oldest urgent rows of a scheduled queue, as below.
UPDATE queue SET ready = 0, due_at = chosen.lease_until, worker = chosen.worker
FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::text[]) AS wanted (queue_key, most, lease_until, worker)
CROSS JOIN LATERAL (
    WITH oldest AS MATERIALIZED (
        SELECT account_id, message_id FROM queue
        WHERE ready = 1 AND urgent_key = wanted.queue_key
        -- include: with_their_messages

-- name: claim_expired
-- Lease rows that have expired and have no lease, with the last reply of the destination. Rows that are being changed
-- are skipped.
UPDATE queue SET ready = 0, due_at = $3, worker = $4
WHERE (account_id, message_id, recipient_id) IN (
    SELECT account_id, message_id, recipient_id FROM queue
    WHERE expires_at <= $1 AND worker IS NULL ORDER BY expires_at LIMIT $2
    FOR UPDATE SKIP LOCKED)
RETURNING account_id, message_id, recipient_id, queue_key, email, email_key, size, attempt_count, lost_leases, queued_at,
    expires_at,
    (SELECT last_smtp_code FROM recipients WHERE recipients.account_id = queue.account_id
        AND recipients.message_id = queue.message_id AND recipients.id = queue.recipient_id),
    (SELECT last_smtp_response FROM recipients WHERE recipients.account_id = queue.account_id
        AND recipients.message_id = queue.message_id AND recipients.id = queue.recipient_id);

-- name: claim
-- Lease the oldest ready rows of a scheduled queue that were queued before a time, and the other recipients of the same
-- messages. Those are found by their key (the sum and the empty text rule out other indexes): a scheduled queue may be
-- long, and a plan that was made while it was short would scan all of it for each message. Rows that another host is
-- leasing are skipped.
UPDATE queue SET ready = 0, due_at = chosen.lease_until, worker = chosen.worker
FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::text[], $5::bigint[])
    AS wanted (queue_key, most, lease_until, worker, before)
CROSS JOIN LATERAL (
    WITH oldest AS MATERIALIZED (
        SELECT account_id, message_id FROM queue
        WHERE ready = 1 AND queue_key = wanted.queue_key AND queued_at <= wanted.before
        -- include: with_their_messages

-- name: extend
-- Renew the leases that are still held. Rows that are being recorded are skipped: waiting for them, in another order of
-- rows, could deadlock.
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

-- name: release
-- Return claimed rows.
UPDATE queue SET ready = 1, due_at = held.now, worker = NULL
FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::text[])
    AS held (account_id, message_id, recipient_id, now, worker)
WHERE queue.account_id = held.account_id AND queue.message_id = held.message_id
    AND queue.recipient_id = held.recipient_id AND queue.worker = held.worker;

-- name: postpone
-- Wait for the next attempt; only for the worker that holds the lease.
UPDATE queue SET ready = 0, due_at = held.due_at, attempt_count = attempt_count + held.step, lost_leases = 0,
    worker = NULL
FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::text[], $6::bigint[])
    AS held (account_id, message_id, recipient_id, due_at, worker, step)
WHERE queue.account_id = held.account_id AND queue.message_id = held.message_id
    AND queue.recipient_id = held.recipient_id AND queue.worker = held.worker
RETURNING queue.account_id, queue.message_id, queue.recipient_id;

-- name: remove
-- Recipients that are final.
DELETE FROM queue USING unnest($1::text[], $2::text[], $3::text[]) AS final (account_id, message_id, recipient_id)
WHERE queue.account_id = final.account_id AND queue.message_id = final.message_id
    AND queue.recipient_id = final.recipient_id;
