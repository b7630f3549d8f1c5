-- name: insert
-- New deliveries.
INSERT INTO webhook_deliveries (account_id, webhook_id, id, event_id, event_type, message_id, recipient_id, replay_of, url,
    body, state, attempt_count, due_at, worker, created_at, ended_at)
SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[],
    $9::text[], $10::bytea[], $11::text[], $12::bigint[], $13::bigint[], $14::text[], $15::bigint[], $16::bigint[]);

-- name: promote
-- Make due rows ready, up to a limit. A row whose lease expired keeps its worker's name; after the last attempt it failed.
UPDATE webhook_deliveries SET
    state = CASE WHEN worker IS NOT NULL AND attempt_count >= $2 THEN 'failed' ELSE 'ready' END,
    ended_at = CASE WHEN worker IS NOT NULL AND attempt_count >= $2 THEN $1::bigint END
WHERE (account_id, webhook_id, id) IN (
    SELECT account_id, webhook_id, id FROM webhook_deliveries
    WHERE state = 'waiting' AND due_at <= $1 AND (worker IS NULL OR due_at <= $4) ORDER BY due_at LIMIT $3
    FOR UPDATE SKIP LOCKED)
RETURNING account_id, webhook_id, id, attempt_count, state, worker, due_at;

-- name: endpoints
-- Endpoints with ready rows, after an id: one index lookup for each, however many rows it has.
WITH RECURSIVE found (webhook_id) AS (
    (SELECT webhook_id FROM webhook_deliveries WHERE state = 'ready' AND webhook_id > $1 ORDER BY webhook_id LIMIT 1)
    UNION ALL
    SELECT following.webhook_id FROM found CROSS JOIN LATERAL (
        SELECT one.webhook_id FROM webhook_deliveries AS one
        WHERE one.state = 'ready' AND one.webhook_id > found.webhook_id ORDER BY one.webhook_id LIMIT 1) AS following)
SELECT webhook_id FROM found LIMIT $2;

-- name: claim
-- Lease the oldest ready rows of an enabled endpoint and count the attempt. Rows that another host is leasing are
-- skipped.
UPDATE webhook_deliveries SET state = 'waiting', due_at = chosen.lease_until, worker = chosen.worker,
    attempt_count = webhook_deliveries.attempt_count + 1
FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::text[]) AS wanted (webhook_id, most, lease_until, worker)
CROSS JOIN LATERAL (
    SELECT one.account_id, one.webhook_id, one.id, wanted.lease_until, wanted.worker FROM webhook_deliveries AS one
    WHERE one.state = 'ready' AND one.webhook_id = wanted.webhook_id
        AND EXISTS (SELECT 1 FROM webhooks
            WHERE webhooks.id = wanted.webhook_id AND enabled = 1 AND removed_at IS NULL)
    ORDER BY one.id LIMIT wanted.most
    FOR UPDATE OF one SKIP LOCKED) AS chosen
WHERE webhook_deliveries.account_id = chosen.account_id AND webhook_deliveries.webhook_id = chosen.webhook_id
    AND webhook_deliveries.id = chosen.id
RETURNING webhook_deliveries.account_id, webhook_deliveries.webhook_id, webhook_deliveries.id, event_id, event_type,
    message_id, body, attempt_count;

-- name: acknowledge
-- Delete ready rows. "Neither waiting nor ended" means ready, and is written so because a plan that was made while few rows
-- were ready would scan the index of all ready rows.
DELETE FROM webhook_deliveries USING unnest($1::text[], $2::text[], $3::text[]) AS known (account_id, webhook_id, id)
WHERE webhook_deliveries.account_id = known.account_id AND webhook_deliveries.webhook_id = known.webhook_id
    AND webhook_deliveries.id = known.id AND state <> 'waiting' AND ended_at IS NULL;

-- name: release
-- Return claimed rows that were not attempted. "Neither ready nor ended" means waiting, and is written so because a plan
-- that was made while few rows were waiting would scan the index of all waiting rows.
UPDATE webhook_deliveries SET state = 'ready', worker = NULL, attempt_count = attempt_count - 1
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[]) AS held (account_id, webhook_id, id, worker)
WHERE webhook_deliveries.account_id = held.account_id AND webhook_deliveries.webhook_id = held.webhook_id
    AND webhook_deliveries.id = held.id AND state <> 'ready' AND ended_at IS NULL
    AND webhook_deliveries.worker = held.worker;

-- name: record
-- The result of an attempt; only for the worker that holds the lease. "Neither ready nor ended" means waiting, as above.
UPDATE webhook_deliveries SET url = ended.url, state = ended.state, due_at = ended.due_at, ended_at = ended.ended_at,
    worker = NULL
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::text[], $7::text[], $8::bigint[], $9::bigint[])
    AS ended (account_id, webhook_id, id, worker, attempt_count, url, state, due_at, ended_at)
WHERE webhook_deliveries.account_id = ended.account_id AND webhook_deliveries.webhook_id = ended.webhook_id
    AND webhook_deliveries.id = ended.id AND webhook_deliveries.state <> 'ready' AND webhook_deliveries.ended_at IS NULL
    AND webhook_deliveries.worker = ended.worker AND webhook_deliveries.attempt_count = ended.attempt_count
RETURNING webhook_deliveries.account_id, webhook_deliveries.webhook_id, webhook_deliveries.id;

-- name: deferrals_since
-- The deferrals of messages since a cursor; a replay is none.
SELECT event_type, webhook_id, message_id, recipient_id
FROM unnest($1::text[], $2::text[]) AS wanted (message, since)
JOIN webhook_deliveries ON message_id = wanted.message AND id >= wanted.since
WHERE event_type = 'email.deferred' AND replay_of IS NULL;

-- name: sweep
-- Delete deliveries that ended before a time, up to a limit; a sweep never waits.
DELETE FROM webhook_deliveries WHERE (account_id, webhook_id, id) IN (
    SELECT account_id, webhook_id, id FROM webhook_deliveries WHERE ended_at <= $1 ORDER BY ended_at LIMIT $2
    FOR UPDATE SKIP LOCKED)
RETURNING account_id, webhook_id, id;

-- name: sweep_removed
-- Delete deliveries of a removed endpoint, up to a limit. Those that are being recorded go with the next sweep.
DELETE FROM webhook_deliveries WHERE (account_id, webhook_id, id) IN (
    SELECT account_id, webhook_id, id FROM webhook_deliveries WHERE account_id = $1 AND webhook_id = $2 LIMIT $3
    FOR UPDATE SKIP LOCKED)
RETURNING account_id, webhook_id, id;

-- name: sweep_undelivered
-- Delete deliveries from before a cursor that have not ended, up to a limit.
DELETE FROM webhook_deliveries WHERE (account_id, webhook_id, id) IN (
    SELECT one.account_id, one.webhook_id, one.id FROM webhooks CROSS JOIN LATERAL (
        SELECT account_id, webhook_id, id FROM webhook_deliveries
        WHERE webhook_deliveries.account_id = webhooks.account_id
            AND webhook_deliveries.webhook_id = webhooks.id AND webhook_deliveries.id < $1 AND ended_at IS NULL LIMIT $2
        FOR UPDATE SKIP LOCKED) AS one
    WHERE removed_at IS NULL LIMIT $2)
RETURNING account_id, webhook_id, id;

-- name: summary
-- How the newest deliveries of endpoints ended: when the last of them did, and how many of those since a cursor did, and
-- succeeded. No row for an endpoint that has none.
SELECT newest.webhook_id, MAX(newest.ended_at),
    SUM(CASE WHEN newest.id >= wanted.since AND newest.ended_at IS NOT NULL THEN 1 ELSE 0 END),
    SUM(CASE WHEN newest.id >= wanted.since AND newest.state = 'succeeded' THEN 1 ELSE 0 END)
FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[]) AS wanted (account_id, webhook_id, since, most)
CROSS JOIN LATERAL (
    SELECT one.webhook_id, one.id, one.state, one.ended_at FROM webhook_deliveries AS one
    WHERE one.account_id = wanted.account_id AND one.webhook_id = wanted.webhook_id
    ORDER BY one.id DESC LIMIT wanted.most) AS newest
GROUP BY newest.webhook_id;
