-- name: add
-- Add sessions to rows.
INSERT INTO tls_report_rows (account_id, domain, day, reporter, policy, failure, sessions)
SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[], $4::text[], $5::text[], $6::text[], $7::bigint[])
ON CONFLICT (account_id, domain, day, reporter, policy, failure)
DO UPDATE SET sessions = tls_report_rows.sessions + excluded.sessions;
