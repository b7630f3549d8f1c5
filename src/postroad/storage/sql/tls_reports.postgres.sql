-- name: open
-- A report about a day of a domain, unless there is one.
INSERT INTO tls_reports (day, domain, due_at, attempt_count, sent)
SELECT day, domain, due_at, 0, '' FROM unnest($1::bigint[], $2::text[], $3::bigint[]) AS new (day, domain, due_at)
ON CONFLICT (day, domain) DO NOTHING;

-- name: add_sessions
-- Add sessions to reports that nobody has begun to send, which have fewer than `most` other results.
INSERT INTO tls_results (day, domain, fingerprint, result, sessions)
SELECT new.day, new.domain, new.fingerprint, new.result, new.sessions
FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::bigint[])
    AS new (day, domain, fingerprint, result, sessions, most)
WHERE EXISTS (SELECT 1 FROM tls_reports AS report
        WHERE report.day = new.day AND report.domain = new.domain AND report.attempt_count = 0)
    AND (SELECT COUNT(*) FROM tls_results AS known
        WHERE known.day = new.day AND known.domain = new.domain AND known.fingerprint <> new.fingerprint) < new.most
ON CONFLICT (day, domain, fingerprint) DO UPDATE SET sessions = tls_results.sessions + excluded.sessions;

-- name: claim_due
-- Claim the reports that are due until a time. Those that another host is claiming are skipped.
UPDATE tls_reports SET due_at = $2, attempt_count = attempt_count + 1
WHERE (day, domain) IN (
    SELECT day, domain FROM tls_reports WHERE due_at <= $1 ORDER BY due_at LIMIT $3 FOR UPDATE SKIP LOCKED)
RETURNING day, domain, due_at, attempt_count, sent;
