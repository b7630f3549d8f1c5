-- name: add
-- Add to the counts of an hour.
INSERT INTO failure_counts (account_id, hour, provider, reason, bounced, failed) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (account_id, hour, provider, reason) DO UPDATE
SET bounced = failure_counts.bounced + excluded.bounced, failed = failure_counts.failed + excluded.failed;

-- name: between
-- The counts of an account between two hours. There are a few rows an hour.
SELECT hour, provider, reason, bounced, failed FROM failure_counts WHERE account_id = $1 AND hour >= $2 AND hour < $3;

-- name: by_provider
-- How many recipients of all accounts were refused since an hour, by provider and reason.
SELECT provider, reason, CAST(SUM(bounced + failed) AS BIGINT) FROM failure_counts WHERE hour >= $1
GROUP BY provider, reason;

-- name: sweep
-- Delete old hours, up to a limit.
DELETE FROM failure_counts WHERE (account_id, hour, provider, reason) IN (
    SELECT account_id, hour, provider, reason FROM failure_counts WHERE hour <= $1 ORDER BY hour LIMIT $2);
