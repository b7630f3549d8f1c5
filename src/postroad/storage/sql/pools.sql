-- name: put
-- How a pool of a worker stands.
INSERT INTO pools (worker, name, state, reason, until, updated_at) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (worker, name) DO UPDATE
SET state = excluded.state, reason = excluded.reason, until = excluded.until, updated_at = excluded.updated_at;

-- name: remove
-- A pool that is simply open.
DELETE FROM pools WHERE worker = $1 AND name = $2;

-- name: remove_worker
-- All pools of a worker that stops.
DELETE FROM pools WHERE worker = $1;

-- name: sweep
-- Pools of workers that have not been heard of.
DELETE FROM pools WHERE updated_at < $1;

-- name: heard_since
-- Pools that are not simply open.
SELECT worker, name, state, reason, until, updated_at FROM pools WHERE updated_at >= $1 ORDER BY name, worker;
