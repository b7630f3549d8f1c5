-- name: put
-- The result of a check.
INSERT INTO domain_checks (account_id, domain_id, purpose, state, detail, found, checked_at)
VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT (account_id, domain_id, purpose) DO UPDATE
SET state = excluded.state, detail = excluded.detail, found = excluded.found, checked_at = excluded.checked_at;

-- name: of_domain
-- The last results of a domain.
SELECT account_id, domain_id, purpose, state, detail, found, checked_at FROM domain_checks
WHERE account_id = $1 AND domain_id = $2;

-- name: remove
-- Delete the results of a domain.
DELETE FROM domain_checks WHERE account_id = $1 AND domain_id = $2;
