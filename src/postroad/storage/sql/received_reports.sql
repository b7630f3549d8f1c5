-- name: counts
-- How many reports about a domain came on a day, and how many of them from a network or a proven reporter.
SELECT COUNT(*), COALESCE(SUM(CASE WHEN network = $5 OR (reporter = $6 AND reporter <> '') THEN 1 ELSE 0 END), 0)
FROM received_reports
WHERE account_id = $1 AND domain = $2 AND day = $3 AND is_authenticated = $4;

-- name: add
-- A report, unless it is there.
INSERT INTO received_reports (account_id, domain, fingerprint, day, network, reporter, is_authenticated, result)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (account_id, domain, fingerprint) DO NOTHING;

-- name: results
-- How many reports about a domain ended how since a day.
SELECT result, COUNT(*) FROM received_reports WHERE account_id = $1 AND domain = $2 AND day >= $3 GROUP BY result;

-- name: sweep
-- Old reports, up to a limit.
DELETE FROM received_reports WHERE (account_id, domain, fingerprint) IN (
    SELECT account_id, domain, fingerprint FROM received_reports WHERE day <= $1 ORDER BY day LIMIT $2);

-- name: dismiss
-- A network that is not the owner's.
INSERT INTO dismissed_networks (account_id, domain, network) VALUES ($1, $2, $3)
ON CONFLICT (account_id, domain, network) DO NOTHING;

-- name: restore
-- A network that counts again.
DELETE FROM dismissed_networks WHERE account_id = $1 AND domain = $2 AND network = $3;

-- name: dismissed
-- The networks that are not the owner's.
SELECT network FROM dismissed_networks WHERE account_id = $1 AND domain = $2;
