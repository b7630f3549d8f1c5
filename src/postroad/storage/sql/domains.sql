-- name: insert
-- Register a domain; nothing when the account has it already, or another account has proven it and this claim is proven too.
INSERT INTO domains (id, account_id, name, verified_at, created_at, verified_by)
VALUES ($1, $2, $3, CAST($4 AS BIGINT), $5, $6) ON CONFLICT DO NOTHING;

-- name: by_name
-- One domain of an account by its name.
SELECT id, account_id, name, verified_at, created_at, warm, verified_by, failing_since, check_at FROM domains
WHERE account_id = $1 AND name = $2;

-- name: by_id
-- One domain of an account.
SELECT id, account_id, name, verified_at, created_at, warm, verified_by, failing_since, check_at FROM domains
WHERE account_id = $1 AND id = $2;

-- name: of_account
-- The domains of an account after a cursor, oldest first.
SELECT id, account_id, name, verified_at, created_at, warm, verified_by, failing_since, check_at FROM domains
WHERE account_id = $1 AND id > $2
ORDER BY id LIMIT $3;

-- name: verified_owner
-- The account that has proven a name.
SELECT account_id FROM domains WHERE name = $1 AND verified_at IS NOT NULL;

-- name: verify
-- Mark a domain as proven; an operator's word also stands in for that of DNS.
UPDATE domains SET verified_at = COALESCE(verified_at, $3), verified_by = $4, failing_since = NULL
WHERE account_id = $1 AND id = $2 AND (verified_at IS NULL OR (verified_by = 'dns' AND $4 = 'operator'));

-- name: set_warm
-- Say whether a domain needs a warm-up.
UPDATE domains SET warm = $3 WHERE account_id = $1 AND id = $2;

-- name: unverify
-- Take back what DNS has proven and has denied for long enough; since when stays known.
UPDATE domains SET verified_at = NULL, verified_by = NULL
WHERE account_id = $1 AND id = $2 AND verified_by = 'dns' AND failing_since <= $3;

-- name: claim_due
-- Take the domains that DNS is to be asked about, for a time.
UPDATE domains SET check_at = $2
WHERE id IN (SELECT id FROM domains WHERE check_at <= $1 ORDER BY check_at LIMIT $3)
RETURNING id, account_id, name, verified_at, created_at, warm, verified_by, failing_since, check_at;

-- name: checked
-- When DNS is asked next about a domain, and since when it says no.
UPDATE domains SET check_at = $3, failing_since = CAST($4 AS BIGINT) WHERE account_id = $1 AND id = $2;

-- name: mark_asked
-- Somebody has DNS asked now, unless somebody has a moment ago. A time from the future says that the clock was set back.
UPDATE domains SET asked_at = $3 WHERE account_id = $1 AND id = $2 AND (asked_at <= $4 OR asked_at > $3);

-- name: asked_at
-- When somebody last had DNS asked about a domain.
SELECT asked_at FROM domains WHERE account_id = $1 AND id = $2;

-- name: remove
-- Forget a domain.
DELETE FROM domains WHERE account_id = $1 AND id = $2;
