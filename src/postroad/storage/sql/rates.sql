-- name: find
-- A bucket.
SELECT credential_id, full_at, seen_at FROM rates WHERE credential_id = $1;

-- name: put
-- The new state of a bucket.
INSERT INTO rates (credential_id, account_id, full_at, seen_at) VALUES ($1, $2, $3, $4)
ON CONFLICT (credential_id) DO UPDATE SET full_at = excluded.full_at, seen_at = excluded.seen_at;

-- name: sweep
-- Delete full buckets, up to a limit; hourly, and the table is small, so without an index.
DELETE FROM rates WHERE credential_id IN (SELECT credential_id FROM rates WHERE full_at < $1 LIMIT $2);
