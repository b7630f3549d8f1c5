-- name: put
-- The status of a provider queue, as one worker reports it.
INSERT INTO provider_queues (worker, name, state, reason, until, updated_at)
SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::bigint[])
ON CONFLICT (worker, name) DO UPDATE
SET state = excluded.state, reason = excluded.reason, until = excluded.until, updated_at = excluded.updated_at;

-- name: remove
-- A provider queue that is open again.
DELETE FROM provider_queues USING unnest($1::text[], $2::text[]) AS open (worker, name)
WHERE provider_queues.worker = open.worker AND provider_queues.name = open.name;
