-- name: lock
-- One batch of counts at a time: SQLite's write transaction is the lock.
SELECT 1;

-- name: find
-- A counter.
SELECT counter, clear_at FROM login_failures WHERE counter = $1;

-- name: put
-- The new state of a counter.
INSERT INTO login_failures (counter, clear_at) VALUES ($1, $2)
ON CONFLICT (counter) DO UPDATE SET clear_at = excluded.clear_at;

-- name: sweep
-- Delete counters without failures, up to a limit.
DELETE FROM login_failures WHERE counter IN (SELECT counter FROM login_failures WHERE clear_at <= $1 LIMIT $2);
