-- name: claim_due
-- Take the domains that DNS is to be asked about, for a time. What another host is taking is passed over.
UPDATE domains SET check_at = $2
WHERE id IN (SELECT id FROM domains WHERE check_at <= $1 ORDER BY check_at LIMIT $3 FOR UPDATE SKIP LOCKED)
RETURNING id, account_id, name, verified_at, created_at, warm, verified_by, failing_since, check_at;
