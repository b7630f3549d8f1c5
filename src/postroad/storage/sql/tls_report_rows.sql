-- name: add
-- Add sessions to a row.
INSERT INTO tls_report_rows (account_id, domain, day, reporter, policy, failure, sessions)
VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT (account_id, domain, day, reporter, policy, failure)
DO UPDATE SET sessions = tls_report_rows.sessions + excluded.sessions;

-- name: since
-- What was reported about a domain since a day.
SELECT reporter, policy, failure, CAST(SUM(sessions) AS BIGINT) FROM tls_report_rows
WHERE account_id = $1 AND domain = $2 AND day >= $3 GROUP BY reporter, policy, failure ORDER BY reporter, policy, failure;

-- name: sweep
-- Old rows, up to a limit.
DELETE FROM tls_report_rows WHERE (account_id, domain, day, reporter, policy, failure) IN (
    SELECT account_id, domain, day, reporter, policy, failure FROM tls_report_rows
    WHERE day <= $1 ORDER BY day LIMIT $2);
