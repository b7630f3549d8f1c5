-- name: version
-- How often anything that decides access has changed.
SELECT version FROM access_version;

-- name: bump
-- Invalidate the caches of every process.
UPDATE access_version SET version = version + 1;
