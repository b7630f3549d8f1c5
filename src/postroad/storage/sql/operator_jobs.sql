-- Long work that operators have started.

-- part: columns
id, kind, subject, state, done, total, result, created_by, created_at, updated_at, finished_at

-- name: insert
-- A job that begins.
INSERT INTO operator_jobs (id, kind, subject, state, done, total, result, created_by, created_at, updated_at, finished_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11);

-- name: update
-- The progress of a job, or its end.
UPDATE operator_jobs SET state = $2, done = $3, result = $4, updated_at = $5, finished_at = CAST($6 AS BIGINT) WHERE id = $1;

-- name: by_id
-- One job.
SELECT
-- include: columns
FROM operator_jobs WHERE id = $1;

-- name: latest
-- The newest jobs.
SELECT
-- include: columns
FROM operator_jobs ORDER BY id DESC LIMIT $1;

-- name: sweep
-- Old jobs.
DELETE FROM operator_jobs WHERE id < $1;
