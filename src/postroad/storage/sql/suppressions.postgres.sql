-- name: find
-- Those of these addresses that are on the list: one index lookup for each, however large the table.
SELECT stored.account_id, stored.email_key, stored.source, stored.reason, stored.smtp_code, stored.message_id, stored.created_at
FROM unnest($1::text[], $2::text[]) AS wanted (account_id, email_key)
CROSS JOIN LATERAL (
    SELECT * FROM suppressions
    WHERE account_id = wanted.account_id AND email_key = wanted.email_key LIMIT 1) AS stored;

-- name: add
-- Add addresses to the list; those that are on it already are neither changed nor returned.
INSERT INTO suppressions (account_id, email_key, source, reason, smtp_code, message_id, created_at)
SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::text[], $7::bigint[])
ON CONFLICT (account_id, email_key) DO NOTHING
RETURNING account_id, email_key;
