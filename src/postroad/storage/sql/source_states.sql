-- What holds for source addresses at run time.

-- name: listed
-- All of them.
SELECT source, provider, state, reason, set_by, set_at, until FROM source_states ORDER BY source, provider, state;

-- name: put
-- Set a state; replaces the same one from before.
INSERT INTO source_states (source, provider, state, reason, set_by, set_at, until) VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT (source, provider, state) DO UPDATE
SET reason = excluded.reason, set_by = excluded.set_by, set_at = excluded.set_at, until = excluded.until;

-- name: remove
-- End a state.
DELETE FROM source_states WHERE source = $1 AND provider = $2 AND state = $3;

-- name: sweep
-- Those whose time is over.
DELETE FROM source_states WHERE until < $1;
