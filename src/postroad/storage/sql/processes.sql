-- name: put
-- A process reports that it runs.
INSERT INTO processes (name, host, process_id, roles, version, started_at, seen_at, rates)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
ON CONFLICT (name) DO UPDATE
SET host = excluded.host, process_id = excluded.process_id, roles = excluded.roles, version = excluded.version,
    started_at = excluded.started_at, seen_at = excluded.seen_at, rates = excluded.rates;

-- name: remove
-- A process that stops.
DELETE FROM processes WHERE name = $1;

-- name: sweep
-- Processes that no longer report.
DELETE FROM processes WHERE seen_at < $1;

-- name: seen_since
-- Processes that reported recently, the oldest first.
SELECT name, host, process_id, roles, version, started_at, seen_at, rates FROM processes WHERE seen_at >= $1
ORDER BY started_at, name;

-- name: last_version
-- The version that started last; no row before the first start.
SELECT version FROM last_started WHERE only_row = 1;

-- name: record_version
-- A version starts.
INSERT INTO last_started (only_row, version) VALUES (1, $1) ON CONFLICT (only_row) DO UPDATE SET version = excluded.version;
