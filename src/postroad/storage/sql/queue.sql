-- name: insert
-- The recipients of accepted messages, ready at once.
INSERT INTO queue (account_id, message_id, recipient_id, lane, email, email_key, size, attempt_count, lost_leases, ready,
    queued_at, due_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, 0, 0, 1, $8, $8);

-- name: is_due
-- A row when something that waits is due, or a lease is over.
SELECT 1 FROM queue WHERE ready = 0 AND due_at <= $1 AND (worker IS NULL OR due_at <= $2) LIMIT 1;

-- name: is_longer_than
-- A row when there are more rows than this.
SELECT 1 FROM queue LIMIT 1 OFFSET $1;

-- name: promote
-- Make ready what is due, some at a time. Whoever let a lease run out is forgotten, and that it happened is not.
UPDATE queue SET ready = 1, lost_leases = lost_leases + (worker IS NOT NULL), worker = NULL
WHERE (account_id, message_id, recipient_id) IN (
    SELECT account_id, message_id, recipient_id FROM queue
    WHERE ready = 0 AND due_at <= $1 AND (worker IS NULL OR due_at <= $3) ORDER BY due_at LIMIT $2);

-- name: lanes
-- Lanes with ready rows, from one name on: one look into the index for each, however many rows it has.
WITH RECURSIVE lanes (lane) AS (
    SELECT MIN(lane) FROM queue WHERE ready = 1 AND lane > $1
    UNION ALL
    SELECT (SELECT MIN(queue.lane) FROM queue WHERE ready = 1 AND queue.lane > lanes.lane)
    FROM lanes WHERE lanes.lane IS NOT NULL LIMIT $2)
SELECT lane FROM lanes WHERE lane IS NOT NULL;

-- name: claim
-- Take the oldest ready rows of a lane under a lease, as far as they were queued before a time, and with them the other
-- recipients of the same messages. Those are found by their key (the plus signs leave no other way): a lane may be long.
UPDATE queue SET ready = 0, due_at = $3, worker = $4
WHERE +ready = 1 AND +lane = $1 AND (account_id, message_id) IN (
    SELECT account_id, message_id FROM queue
    WHERE ready = 1 AND lane = $1 AND queued_at <= $5 ORDER BY recipient_id LIMIT $2)
RETURNING account_id, message_id, recipient_id, lane, email, email_key, size, attempt_count, lost_leases, queued_at;

-- name: extend
-- Hold on to what is claimed, as far as it still is.
UPDATE queue SET due_at = $4
WHERE account_id = $1 AND message_id = $2 AND recipient_id = $3 AND worker = $5
RETURNING account_id, message_id, recipient_id;

-- name: hand_back
-- Let go of what is claimed, at once.
UPDATE queue SET ready = 1, due_at = $4, worker = NULL
WHERE account_id = $1 AND message_id = $2 AND recipient_id = $3 AND worker = $5;

-- name: postpone
-- Wait for the next attempt; only by the worker that holds the lease.
UPDATE queue SET ready = 0, due_at = $4, attempt_count = attempt_count + 1, lost_leases = 0, worker = NULL
WHERE account_id = $1 AND message_id = $2 AND recipient_id = $3 AND worker = $5
RETURNING account_id, message_id, recipient_id;

-- name: remove
-- Recipients that are final.
DELETE FROM queue WHERE account_id = $1 AND message_id = $2 AND recipient_id = $3;
