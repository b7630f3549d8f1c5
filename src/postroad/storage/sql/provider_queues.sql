-- name: put
-- The status of a provider queue, as one worker reports it.
INSERT INTO provider_queues (worker, name, state, reason, until, updated_at) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (worker, name) DO UPDATE
SET state = excluded.state, reason = excluded.reason, until = excluded.until, updated_at = excluded.updated_at;

-- name: remove
-- A provider queue that is open again.
DELETE FROM provider_queues WHERE worker = $1 AND name = $2;

-- name: remove_worker
-- All provider queues of a worker that stops.
DELETE FROM provider_queues WHERE worker = $1;

-- name: sweep
-- Provider queues of workers that no longer report.
DELETE FROM provider_queues WHERE updated_at < $1;

-- name: heard_since
-- Provider queues that workers reported recently.
SELECT worker, name, state, reason, until, updated_at FROM provider_queues WHERE updated_at >= $1 ORDER BY name, worker;
