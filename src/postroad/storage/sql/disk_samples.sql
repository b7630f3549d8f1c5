-- name: insert
-- A measurement of the free space.
INSERT INTO disk_samples (host, folder, sampled_at, free_bytes) VALUES ($1, $2, $3, $4)
ON CONFLICT (host, folder, sampled_at) DO UPDATE SET free_bytes = excluded.free_bytes;

-- name: oldest
-- The oldest measurement of a folder on a host since a time.
SELECT sampled_at, free_bytes FROM disk_samples WHERE host = $1 AND folder = $2 AND sampled_at >= $3
ORDER BY sampled_at LIMIT 1;

-- name: sweep
-- Measurements that are too old to tell how fast a disk fills.
DELETE FROM disk_samples WHERE sampled_at < $1;
