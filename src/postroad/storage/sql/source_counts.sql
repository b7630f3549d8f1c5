-- name: add
-- Add to the counts of a day.
INSERT INTO source_counts (source, provider, day, delivered, deferred, refused, blocked)
VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT (source, provider, day) DO UPDATE
SET delivered = source_counts.delivered + excluded.delivered, deferred = source_counts.deferred + excluded.deferred,
    refused = source_counts.refused + excluded.refused, blocked = source_counts.blocked + excluded.blocked;

-- name: since
-- The counts from a day on. There are a few rows a day for each source address.
SELECT source, provider, day, delivered, deferred, refused, blocked FROM source_counts WHERE day >= $1
ORDER BY day, source, provider;

-- name: sweep
-- Delete old days, up to a limit.
DELETE FROM source_counts WHERE (source, provider, day) IN (
    SELECT source, provider, day FROM source_counts WHERE day <= $1 ORDER BY day LIMIT $2);
