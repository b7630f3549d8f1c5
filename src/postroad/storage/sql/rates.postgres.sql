-- name: find
-- The buckets of a batch.
SELECT name, full_at, seen_at FROM rates WHERE name = ANY($1::text[]);

-- name: put
-- The new states of buckets.
INSERT INTO rates (name, account_id, full_at, seen_at)
SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[])
ON CONFLICT (name) DO UPDATE SET full_at = excluded.full_at, seen_at = excluded.seen_at;

-- name: sweep
-- Delete full buckets, up to a limit. Locked ones are skipped: a sweep never waits.
DELETE FROM rates WHERE name IN (
    SELECT name FROM rates WHERE full_at < $1 LIMIT $2 FOR UPDATE SKIP LOCKED);
