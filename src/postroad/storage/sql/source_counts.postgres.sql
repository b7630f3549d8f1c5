-- name: add
-- Add to the counts of days.
INSERT INTO source_counts (source, provider, day, delivered, deferred, refused, blocked)
SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[])
ON CONFLICT (source, provider, day) DO UPDATE
SET delivered = source_counts.delivered + excluded.delivered, deferred = source_counts.deferred + excluded.deferred,
    refused = source_counts.refused + excluded.refused, blocked = source_counts.blocked + excluded.blocked;
