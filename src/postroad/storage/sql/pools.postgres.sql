-- name: put
-- How a pool of a worker stands.
INSERT INTO pools (worker, name, state, reason, until, updated_at)
SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::bigint[])
ON CONFLICT (worker, name) DO UPDATE
SET state = excluded.state, reason = excluded.reason, until = excluded.until, updated_at = excluded.updated_at;

-- name: remove
-- A pool that is simply open.
DELETE FROM pools USING unnest($1::text[], $2::text[]) AS open (worker, name)
WHERE pools.worker = open.worker AND pools.name = open.name;
