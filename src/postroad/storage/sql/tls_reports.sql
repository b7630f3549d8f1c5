-- name: open
-- A report about a day of a domain, unless there is one.
INSERT INTO tls_reports (day, domain, due_at, attempt_count, sent) VALUES ($1, $2, $3, 0, '')
ON CONFLICT (day, domain) DO NOTHING;

-- name: count
-- How many reports there are about a day.
SELECT COUNT(*) FROM tls_reports WHERE day = $1;

-- name: domains
-- The domains that have a report about a day.
SELECT domain FROM tls_reports WHERE day = $1;

-- name: add_sessions
-- Add sessions to a report that nobody has begun to send, which has fewer than $6 other results.
INSERT INTO tls_results (day, domain, fingerprint, result, sessions)
SELECT $1, $2, $3, $4, $5
WHERE EXISTS (SELECT 1 FROM tls_reports WHERE day = $1 AND domain = $2 AND attempt_count = 0)
    AND (SELECT COUNT(*) FROM tls_results WHERE day = $1 AND domain = $2 AND fingerprint <> $3) < $6
ON CONFLICT (day, domain, fingerprint) DO UPDATE SET sessions = tls_results.sessions + excluded.sessions;

-- name: claim_due
-- Claim the reports that are due until a time.
UPDATE tls_reports SET due_at = $2, attempt_count = attempt_count + 1
WHERE (day, domain) IN (SELECT day, domain FROM tls_reports WHERE due_at <= $1 ORDER BY due_at LIMIT $3)
RETURNING day, domain, due_at, attempt_count, sent;

-- name: sessions
-- The results of a report.
SELECT result, sessions FROM tls_results WHERE day = $1 AND domain = $2 ORDER BY fingerprint;

-- name: postpone
-- A report that could not be sent everywhere.
UPDATE tls_reports SET due_at = $3, sent = $4 WHERE day = $1 AND domain = $2;

-- name: remove
-- A report that is done.
DELETE FROM tls_reports WHERE day = $1 AND domain = $2;

-- name: remove_sessions
-- The results of a report that is done.
DELETE FROM tls_results WHERE day = $1 AND domain = $2;

-- name: sweep
-- Old reports, up to a limit.
DELETE FROM tls_reports WHERE (day, domain) IN (
    SELECT day, domain FROM tls_reports WHERE day <= $1 ORDER BY day, domain LIMIT $2);

-- name: sweep_sessions
-- Old results, up to a limit.
DELETE FROM tls_results WHERE (day, domain, fingerprint) IN (
    SELECT day, domain, fingerprint FROM tls_results WHERE day <= $1 ORDER BY day, domain, fingerprint LIMIT $2);
