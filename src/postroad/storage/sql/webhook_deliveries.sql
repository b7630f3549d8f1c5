-- name: insert
-- New deliveries.
INSERT INTO webhook_deliveries (account_id, webhook_id, id, event_id, event_type, message_id, recipient_id, replay_of, url,
    body, state, attempt_count, due_at, worker, created_at, ended_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16);

-- name: is_due
-- A row when a waiting row is due, or a lease has expired.
SELECT 1 FROM webhook_deliveries WHERE state = 'waiting' AND due_at <= $1 AND (worker IS NULL OR due_at <= $2) LIMIT 1;

-- name: promote
-- Make due rows ready, up to a limit. A row whose lease expired keeps its worker's name; after the last attempt it failed.
UPDATE webhook_deliveries SET
    state = CASE WHEN worker IS NOT NULL AND attempt_count >= $2 THEN 'failed' ELSE 'ready' END,
    ended_at = CASE WHEN worker IS NOT NULL AND attempt_count >= $2 THEN $1 END
WHERE (account_id, webhook_id, id) IN (
    SELECT account_id, webhook_id, id FROM webhook_deliveries
    WHERE state = 'waiting' AND due_at <= $1 AND (worker IS NULL OR due_at <= $4) ORDER BY due_at LIMIT $3)
RETURNING account_id, webhook_id, id, attempt_count, state, worker, due_at;

-- name: endpoints
-- Endpoints with ready rows, after an id: one index lookup for each, however many rows it has.
WITH RECURSIVE found (webhook_id) AS (
    SELECT MIN(webhook_id) FROM webhook_deliveries WHERE state = 'ready' AND webhook_id > $1
    UNION ALL
    SELECT (SELECT MIN(one.webhook_id) FROM webhook_deliveries AS one
        WHERE one.state = 'ready' AND one.webhook_id > found.webhook_id)
    FROM found WHERE found.webhook_id IS NOT NULL LIMIT $2)
SELECT webhook_id FROM found WHERE webhook_id IS NOT NULL;

-- name: claim
-- Lease the oldest ready rows of an enabled endpoint and count the attempt.
UPDATE webhook_deliveries SET state = 'waiting', due_at = $3, worker = $4, attempt_count = attempt_count + 1
WHERE (account_id, webhook_id, id) IN (
    SELECT account_id, webhook_id, id FROM webhook_deliveries
    WHERE state = 'ready' AND webhook_id = $1
        AND EXISTS (SELECT 1 FROM webhooks WHERE webhooks.id = $1 AND enabled = 1 AND removed_at IS NULL)
    ORDER BY id LIMIT $2)
RETURNING account_id, webhook_id, id, event_id, event_type, message_id, body, attempt_count;

-- name: ready
-- The oldest ready rows of an endpoint.
SELECT account_id, webhook_id, id, event_id, event_type, message_id, recipient_id, replay_of, url, body, state,
    attempt_count, due_at, worker, created_at, ended_at
FROM webhook_deliveries
WHERE state = 'ready' AND webhook_id = $2 AND account_id = $1 ORDER BY id LIMIT $3;

-- name: acknowledge
-- Delete a ready row.
DELETE FROM webhook_deliveries WHERE account_id = $1 AND webhook_id = $2 AND id = $3 AND state = 'ready';

-- name: release
-- Return claimed rows that were not attempted.
UPDATE webhook_deliveries SET state = 'ready', worker = NULL, attempt_count = attempt_count - 1
WHERE account_id = $1 AND webhook_id = $2 AND id = $3 AND state = 'waiting' AND worker = $4;

-- name: set_body
-- Write the event of a claimed row.
UPDATE webhook_deliveries SET body = $4 WHERE account_id = $1 AND webhook_id = $2 AND id = $3;

-- name: drop
-- Delete a claimed row. "Neither ready nor ended" means waiting: PostgreSQL would scan the index of all waiting rows with
-- a plan that was made while there were few.
DELETE FROM webhook_deliveries
WHERE account_id = $1 AND webhook_id = $2 AND id = $3 AND state <> 'ready' AND ended_at IS NULL AND worker = $4;

-- name: record
-- The result of an attempt; only for the worker that holds the lease.
UPDATE webhook_deliveries SET url = $6, state = $7, due_at = $8, ended_at = $9, worker = NULL
WHERE account_id = $1 AND webhook_id = $2 AND id = $3 AND state = 'waiting' AND worker = $4 AND attempt_count = $5
RETURNING account_id, webhook_id, id;

-- name: by_id
-- One delivery, unless it ended before a time.
SELECT account_id, webhook_id, id, event_id, event_type, message_id, recipient_id, replay_of, url, body, state,
    attempt_count, due_at, worker, created_at, ended_at
FROM webhook_deliveries
WHERE account_id = $1 AND webhook_id = $2 AND id = $3 AND (ended_at IS NULL OR ended_at > $4);

-- name: has_succeeded
-- A row when a delivery to an endpoint has succeeded since a time.
SELECT 1 FROM webhook_deliveries
WHERE account_id = $1 AND webhook_id = $2 AND state = 'succeeded' AND ended_at >= $3 LIMIT 1;

-- name: page
-- Deliveries of an endpoint, newest first.
SELECT account_id, webhook_id, id, event_id, event_type, message_id, recipient_id, replay_of, url, body, state,
    attempt_count, due_at, worker, created_at, ended_at
FROM webhook_deliveries
WHERE account_id = $1 AND webhook_id = $2 AND id < $3 AND (ended_at IS NULL OR ended_at > $4)
ORDER BY id DESC LIMIT $5;

-- name: page_of_status
-- Deliveries of an endpoint of one status, newest first, between two cursors; all rows between them are read.
SELECT account_id, webhook_id, id, event_id, event_type, message_id, recipient_id, replay_of, url, body, state,
    attempt_count, due_at, worker, created_at, ended_at
FROM webhook_deliveries
WHERE account_id = $1 AND webhook_id = $2 AND id < $3 AND id >= $4 AND (ended_at IS NULL OR ended_at > $5)
    AND CASE WHEN ended_at IS NULL THEN 'pending' ELSE state END = $6
ORDER BY id DESC LIMIT $7;

-- name: place_behind
-- The delivery that is $4 rows before a cursor.
SELECT id FROM webhook_deliveries WHERE account_id = $1 AND webhook_id = $2 AND id < $3
ORDER BY id DESC LIMIT 1 OFFSET $4;

-- name: page_failed
-- Failed deliveries of an endpoint, newest first, by their own index.
SELECT account_id, webhook_id, id, event_id, event_type, message_id, recipient_id, replay_of, url, body, state,
    attempt_count, due_at, worker, created_at, ended_at
FROM webhook_deliveries
WHERE webhook_id = $1 AND state = 'failed' AND id < $2 AND ended_at > $3
ORDER BY id DESC LIMIT $4;

-- name: failed_between
-- Failed deliveries of an endpoint between two cursors, oldest first. One needs no replay (1) when it is a ping, when a
-- later delivery of its event succeeded or is pending, or when a later failure lies between the cursors as well. For the
-- few events without a message, all later deliveries of the endpoint are read.
SELECT account_id, webhook_id, id, event_id, event_type, message_id, recipient_id, replay_of, url, body, state,
    attempt_count, due_at, worker, created_at, ended_at,
    CASE WHEN event_type = 'webhook.test' OR EXISTS (
        SELECT 1 FROM webhook_deliveries AS later
        WHERE later.message_id = one.message_id AND later.id > one.id AND later.webhook_id = one.webhook_id
            AND later.event_id = one.event_id AND (later.state <> 'failed' OR later.id < $3)) OR EXISTS (
        SELECT 1 FROM webhook_deliveries AS later
        WHERE one.message_id IS NULL AND later.account_id = one.account_id AND later.webhook_id = one.webhook_id
            AND later.id > one.id AND later.event_id = one.event_id
            AND (later.state <> 'failed' OR later.id < $3)) THEN 1 ELSE 0 END
FROM webhook_deliveries AS one
WHERE webhook_id = $1 AND state = 'failed' AND id > $2 AND id < $3 AND ended_at > $4
ORDER BY id LIMIT $5;

-- name: deferrals_since
-- The deferrals of messages since a cursor; a replay is none.
SELECT event_type, webhook_id, message_id, recipient_id FROM webhook_deliveries
WHERE message_id = $1 AND id >= $2 AND event_type = 'email.deferred' AND replay_of IS NULL;

-- name: newest
-- The states of the newest deliveries of an endpoint.
SELECT id, state, attempt_count, due_at FROM webhook_deliveries
WHERE account_id = $1 AND webhook_id = $2 ORDER BY id DESC LIMIT $3;

-- name: summary
-- How the newest deliveries of an endpoint ended: when the last of them did, and how many of those since a cursor did,
-- and succeeded. No row when it has none.
SELECT webhook_id, MAX(ended_at), SUM(CASE WHEN id >= $3 AND ended_at IS NOT NULL THEN 1 ELSE 0 END),
    SUM(CASE WHEN id >= $3 AND state = 'succeeded' THEN 1 ELSE 0 END)
FROM (SELECT webhook_id, id, state, ended_at FROM webhook_deliveries
    WHERE account_id = $1 AND webhook_id = $2 ORDER BY id DESC LIMIT $4) AS newest
GROUP BY webhook_id;

-- name: page_of_message
-- Deliveries of an endpoint about one message, of one status or of any, newest first.
SELECT account_id, webhook_id, id, event_id, event_type, message_id, recipient_id, replay_of, url, body, state,
    attempt_count, due_at, worker, created_at, ended_at
FROM webhook_deliveries
WHERE account_id = $1 AND webhook_id = $2 AND message_id = $3 AND id < $4 AND (ended_at IS NULL OR ended_at > $5)
    AND (CAST($6 AS TEXT) IS NULL OR CASE WHEN ended_at IS NULL THEN 'pending' ELSE state END = $6)
ORDER BY id DESC LIMIT $7;

-- name: sweep
-- Delete deliveries that ended before a time, up to a limit.
DELETE FROM webhook_deliveries WHERE (account_id, webhook_id, id) IN (
    SELECT account_id, webhook_id, id FROM webhook_deliveries WHERE ended_at <= $1 ORDER BY ended_at LIMIT $2)
RETURNING account_id, webhook_id, id;

-- name: sweep_removed
-- Delete deliveries of a removed endpoint, up to a limit.
DELETE FROM webhook_deliveries WHERE (account_id, webhook_id, id) IN (
    SELECT account_id, webhook_id, id FROM webhook_deliveries WHERE account_id = $1 AND webhook_id = $2 LIMIT $3)
RETURNING account_id, webhook_id, id;

-- name: sweep_undelivered
-- Delete deliveries from before a cursor that have not ended, up to a limit.
DELETE FROM webhook_deliveries WHERE (account_id, webhook_id, id) IN (
    SELECT one.account_id, one.webhook_id, one.id FROM webhooks CROSS JOIN webhook_deliveries AS one
    WHERE removed_at IS NULL AND one.account_id = webhooks.account_id AND one.webhook_id = webhooks.id
        AND one.id < $1 AND ended_at IS NULL LIMIT $2)
RETURNING account_id, webhook_id, id;
