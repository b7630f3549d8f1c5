-- name: claim_due
-- Claim the domains whose DNS check is due until a time. Those that another host is claiming are skipped.
UPDATE domains SET check_at = $2
WHERE id IN (SELECT id FROM domains WHERE check_at <= $1 ORDER BY check_at LIMIT $3 FOR UPDATE SKIP LOCKED)
RETURNING id, account_id, name, verified_at, created_at, warm, verified_by, failing_since, check_at,
    return_path_domain, link_host;
