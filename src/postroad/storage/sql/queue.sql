-- name: insert
-- The recipients of accepted messages, ready unless they are due later.
INSERT INTO queue (account_id, message_id, recipient_id, queue_key, email, email_key, size, attempt_count, lost_leases,
    queued_at, ready, due_at, expires_at, urgent_key, list_name)
VALUES ($1, $2, $3, $4, $5, $6, $7, 0, 0, $8, $9, $10, $11, $12, $13);

-- name: find_work
-- Whether a waiting row is due or a lease has expired, whether an urgent row is ready, whether a row has expired: one
-- index lookup each.
SELECT EXISTS (SELECT 1 FROM queue WHERE ready = 0 AND due_at <= $1 AND (worker IS NULL OR due_at <= $2)),
    EXISTS (SELECT 1 FROM queue WHERE ready = 1 AND urgent_key > ''),
    EXISTS (SELECT 1 FROM queue WHERE expires_at <= $2 AND worker IS NULL);

-- name: totals_by_account
-- How many rows each account has, and the bytes of those of live mail, with $1 for each row, along the primary key.
SELECT account_id, COUNT(*), CAST(SUM(
    CASE WHEN substr(queue_key, 1, 18) = 'simulator.invalid ' THEN 0 ELSE size + CAST($1 AS BIGINT) END) AS BIGINT)
FROM queue GROUP BY account_id;

-- name: live_bytes
-- The same bytes of the account $1, but with each message once, and $2 for each row. It takes several times as long.
SELECT CAST(COALESCE(SUM(live_bytes), 0) AS BIGINT) FROM (
    SELECT MAX(size) + CAST($2 AS BIGINT) * COUNT(*) AS live_bytes FROM queue
    WHERE account_id = $1 AND substr(queue_key, 1, 18) <> 'simulator.invalid ' GROUP BY message_id) AS message;

-- name: promote
-- Make due rows ready, up to a limit. `lost_leases` counts the leases that expired.
UPDATE queue SET ready = 1, lost_leases = lost_leases + (worker IS NOT NULL), worker = NULL
WHERE (account_id, message_id, recipient_id) IN (
    SELECT account_id, message_id, recipient_id FROM queue
    WHERE ready = 0 AND due_at <= $1 AND (worker IS NULL OR due_at <= $3) ORDER BY due_at LIMIT $2);

-- name: queue_keys
-- Keys of scheduled queues with ready rows, after a key: one index lookup for each, however many rows it has.
WITH RECURSIVE keys (queue_key) AS (
    SELECT MIN(queue_key) FROM queue WHERE ready = 1 AND queue_key > $1
    UNION ALL
    SELECT (SELECT MIN(queue.queue_key) FROM queue WHERE ready = 1 AND queue.queue_key > keys.queue_key)
    FROM keys WHERE keys.queue_key IS NOT NULL LIMIT $2)
SELECT queue_key FROM keys WHERE queue_key IS NOT NULL;

-- name: urgent_keys
-- The same for urgent rows.
WITH RECURSIVE keys (queue_key) AS (
    SELECT MIN(urgent_key) FROM queue WHERE ready = 1 AND urgent_key > $1
    UNION ALL
    SELECT (SELECT MIN(queue.urgent_key) FROM queue WHERE ready = 1 AND queue.urgent_key > keys.queue_key)
    FROM keys WHERE keys.queue_key IS NOT NULL LIMIT $2)
SELECT queue_key FROM keys WHERE queue_key IS NOT NULL;

-- name: claim_urgent
-- Lease the oldest urgent rows of a scheduled queue, as below.
UPDATE queue SET ready = 0, due_at = $3, worker = $4
WHERE +ready = 1 AND +queue_key = $1 AND (account_id, message_id) IN (
    SELECT account_id, message_id FROM queue
    WHERE ready = 1 AND urgent_key = $1 ORDER BY recipient_id LIMIT $2)
RETURNING account_id, message_id, recipient_id, queue_key, email, email_key, size, attempt_count, lost_leases, queued_at,
    expires_at, list_name;

-- name: claim_expired
-- Lease rows that have expired and have no lease, with the last reply of the destination.
UPDATE queue SET ready = 0, due_at = $3, worker = $4
WHERE (account_id, message_id, recipient_id) IN (
    SELECT account_id, message_id, recipient_id FROM queue
    WHERE expires_at <= $1 AND worker IS NULL ORDER BY expires_at LIMIT $2)
RETURNING account_id, message_id, recipient_id, queue_key, email, email_key, size, attempt_count, lost_leases, queued_at,
    expires_at,
    (SELECT last_smtp_code FROM recipients WHERE recipients.account_id = queue.account_id
        AND recipients.message_id = queue.message_id AND recipients.id = queue.recipient_id),
    (SELECT last_smtp_response FROM recipients WHERE recipients.account_id = queue.account_id
        AND recipients.message_id = queue.message_id AND recipients.id = queue.recipient_id);

-- name: claim
-- Lease the oldest ready rows of a scheduled queue that were queued before a time, and the other recipients of the same
-- messages. Those are found by their key (the plus signs rule out other indexes), because a scheduled queue may be long.
UPDATE queue SET ready = 0, due_at = $3, worker = $4
WHERE +ready = 1 AND +queue_key = $1 AND (account_id, message_id) IN (
    SELECT account_id, message_id FROM queue
    WHERE ready = 1 AND queue_key = $1 AND queued_at <= $5 ORDER BY recipient_id LIMIT $2)
RETURNING account_id, message_id, recipient_id, queue_key, email, email_key, size, attempt_count, lost_leases, queued_at,
    expires_at, list_name;

-- name: extend
-- Renew the leases that are still held.
UPDATE queue SET due_at = $4
WHERE account_id = $1 AND message_id = $2 AND recipient_id = $3 AND worker = $5
RETURNING account_id, message_id, recipient_id;

-- name: release
-- Return claimed rows.
UPDATE queue SET ready = 1, due_at = $4, worker = NULL
WHERE account_id = $1 AND message_id = $2 AND recipient_id = $3 AND worker = $5;

-- name: end_leases
-- Return what any worker has claimed. It reads the whole queue, once after a restore.
UPDATE queue SET ready = 1, due_at = $1, lost_leases = lost_leases + 1, worker = NULL WHERE worker IS NOT NULL;

-- name: postpone
-- Wait for the next attempt; only for the worker that holds the lease.
UPDATE queue SET ready = 0, due_at = $4, attempt_count = attempt_count + $6, lost_leases = 0, worker = NULL
WHERE account_id = $1 AND message_id = $2 AND recipient_id = $3 AND worker = $5
RETURNING account_id, message_id, recipient_id;

-- name: remove
-- Recipients that are final.
DELETE FROM queue WHERE account_id = $1 AND message_id = $2 AND recipient_id = $3;
