-- What operators have changed of provider queues at run time.

-- name: listed
-- All changes. A row of an older version has one reason and one end for both.
SELECT name, paused, connections, messages_per_second, messages_per_connection, set_by, set_at,
    CASE WHEN split_at = set_at THEN pause_reason ELSE reason END,
    CASE WHEN split_at = set_at THEN pause_until ELSE until END,
    CASE WHEN split_at = set_at THEN limits_reason ELSE reason END,
    CASE WHEN split_at = set_at THEN limits_until ELSE until END
FROM provider_overrides ORDER BY name;

-- name: put
-- Change a provider queue; replaces an earlier change. The last two are what an older version reads.
INSERT INTO provider_overrides (name, paused, connections, messages_per_second, messages_per_connection, set_by, set_at,
    pause_reason, pause_until, limits_reason, limits_until, split_at, reason, until)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $7, $12, $13)
ON CONFLICT (name) DO UPDATE
SET paused = excluded.paused, connections = excluded.connections, messages_per_second = excluded.messages_per_second,
    messages_per_connection = excluded.messages_per_connection, set_by = excluded.set_by, set_at = excluded.set_at,
    pause_reason = excluded.pause_reason, pause_until = excluded.pause_until, limits_reason = excluded.limits_reason,
    limits_until = excluded.limits_until, split_at = excluded.split_at, reason = excluded.reason, until = excluded.until;

-- name: remove
-- Use the settings again.
DELETE FROM provider_overrides WHERE name = $1;

-- name: sweep
-- Changes whose time is over.
DELETE FROM provider_overrides WHERE until < $1;
