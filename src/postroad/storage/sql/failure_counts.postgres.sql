-- name: add
-- Add to the counts of hours.
INSERT INTO failure_counts (account_id, hour, provider, reason, bounced, failed)
SELECT * FROM unnest($1::text[], $2::bigint[], $3::text[], $4::text[], $5::bigint[], $6::bigint[])
ON CONFLICT (account_id, hour, provider, reason) DO UPDATE
SET bounced = failure_counts.bounced + excluded.bounced, failed = failure_counts.failed + excluded.failed;
