-- name: insert
-- Register a domain; nothing when the account has it already, or it is verified here and by another account.
INSERT INTO domains (id, account_id, name, verified_at, created_at, verified_by)
VALUES ($1, $2, $3, CAST($4 AS BIGINT), $5, $6) ON CONFLICT DO NOTHING;

-- name: by_name
-- One domain of an account by its name.
SELECT id, account_id, name, verified_at, created_at, warm, verified_by, failing_since, check_at,
    return_path_domain, link_host
FROM domains
WHERE account_id = $1 AND name = $2;

-- name: by_id
-- One domain of an account.
SELECT id, account_id, name, verified_at, created_at, warm, verified_by, failing_since, check_at,
    return_path_domain, link_host
FROM domains
WHERE account_id = $1 AND id = $2;

-- name: of_account
-- The domains of an account after a cursor, oldest first.
SELECT id, account_id, name, verified_at, created_at, warm, verified_by, failing_since, check_at,
    return_path_domain, link_host
FROM domains
WHERE account_id = $1 AND id > $2
ORDER BY id LIMIT $3;

-- name: verified_owner
-- The account that has verified a name.
SELECT account_id FROM domains WHERE name = $1 AND verified_at IS NOT NULL;

-- name: verify
-- Mark a domain as verified; an operator's verification replaces that by DNS.
UPDATE domains SET verified_at = COALESCE(verified_at, $3), verified_by = $4, failing_since = NULL
WHERE account_id = $1 AND id = $2 AND (verified_at IS NULL OR (verified_by = 'dns' AND $4 = 'operator'));

-- name: set_warm
-- Set whether a domain skips the warm-up.
UPDATE domains SET warm = $3 WHERE account_id = $1 AND id = $2;

-- name: set_link_host
-- Set the host of the links of a domain.
UPDATE domains SET link_host = $3 WHERE account_id = $1 AND id = $2;

-- name: unverify
-- Unverify a domain that DNS verified and that has failed for long enough; `failing_since` stays.
UPDATE domains SET verified_at = NULL, verified_by = NULL
WHERE account_id = $1 AND id = $2 AND verified_by = 'dns' AND failing_since <= $3;

-- name: claim_due
-- Claim the domains whose DNS check is due until a time.
UPDATE domains SET check_at = $2
WHERE id IN (SELECT id FROM domains WHERE check_at <= $1 ORDER BY check_at LIMIT $3)
RETURNING id, account_id, name, verified_at, created_at, warm, verified_by, failing_since, check_at,
    return_path_domain, link_host;

-- name: record_check
-- When DNS is checked next, since when the check fails, and the subdomain for return paths.
UPDATE domains SET check_at = $3, failing_since = CAST($4 AS BIGINT), return_path_domain = $5
WHERE account_id = $1 AND id = $2;

-- name: schedule_check
-- When DNS is checked next.
UPDATE domains SET check_at = $3 WHERE account_id = $1 AND id = $2;

-- name: mark_check_requested
-- A DNS check is requested now, unless one was a moment ago. A time in the future means that the clock was set back.
UPDATE domains SET check_requested_at = $3
WHERE account_id = $1 AND id = $2 AND (check_requested_at <= $4 OR check_requested_at > $3);

-- name: check_requested_at
-- When a DNS check was last requested.
SELECT check_requested_at FROM domains WHERE account_id = $1 AND id = $2;

-- name: remove
-- Delete a domain.
DELETE FROM domains WHERE account_id = $1 AND id = $2;

-- name: count
-- How many domains an account has.
SELECT COUNT(*) FROM domains WHERE account_id = $1;
