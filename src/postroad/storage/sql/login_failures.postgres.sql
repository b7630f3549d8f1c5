-- name: lock
-- One batch of counts at a time, over all hosts; the number is arbitrary, but always the same.
SELECT pg_advisory_xact_lock(7082512);

-- name: find
-- The counters of a batch.
SELECT counter, clear_at FROM login_failures WHERE counter = ANY($1::bytea[]);

-- name: put
-- The new states of counters.
INSERT INTO login_failures (counter, clear_at)
SELECT * FROM unnest($1::bytea[], $2::bigint[])
ON CONFLICT (counter) DO UPDATE SET clear_at = excluded.clear_at;

-- name: sweep
-- Delete counters without failures, up to a limit. Locked ones are skipped: a sweep never waits.
DELETE FROM login_failures WHERE counter IN (
    SELECT counter FROM login_failures WHERE clear_at <= $1 LIMIT $2 FOR UPDATE SKIP LOCKED);
