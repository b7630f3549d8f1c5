-- name: version
-- How often anything that decides access has changed.
SELECT version FROM access_version;

-- name: bump
-- Tell every process to look again.
UPDATE access_version SET version = version + 1;
