-- name: find
-- A bucket.
SELECT name, full_at, seen_at FROM rates WHERE name = $1;

-- name: put
-- The new state of a bucket.
INSERT INTO rates (name, account_id, full_at, seen_at) VALUES ($1, $2, $3, $4)
ON CONFLICT (name) DO UPDATE SET full_at = excluded.full_at, seen_at = excluded.seen_at;

-- name: sweep
-- Delete full buckets, up to a limit; hourly, and the table is small, so without an index.
DELETE FROM rates WHERE name IN (SELECT name FROM rates WHERE full_at < $1 LIMIT $2);
