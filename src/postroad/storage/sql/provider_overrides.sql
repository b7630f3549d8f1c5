-- What operators have changed of provider queues at run time.

-- name: listed
-- All changes.
SELECT name, paused, connections, messages_per_second, messages_per_connection, set_by, set_at,
    pause_reason, pause_until, limits_reason, limits_until
FROM provider_overrides ORDER BY name;

-- name: put
-- Change a provider queue; replaces an earlier change. The last one is when both are over.
INSERT INTO provider_overrides (name, paused, connections, messages_per_second, messages_per_connection, set_by, set_at,
    pause_reason, pause_until, limits_reason, limits_until, until)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
ON CONFLICT (name) DO UPDATE
SET paused = excluded.paused, connections = excluded.connections, messages_per_second = excluded.messages_per_second,
    messages_per_connection = excluded.messages_per_connection, set_by = excluded.set_by, set_at = excluded.set_at,
    pause_reason = excluded.pause_reason, pause_until = excluded.pause_until, limits_reason = excluded.limits_reason,
    limits_until = excluded.limits_until, until = excluded.until;

-- name: remove
-- Use the settings again.
DELETE FROM provider_overrides WHERE name = $1;

-- name: sweep
-- Changes whose time is over.
DELETE FROM provider_overrides WHERE until < $1;
