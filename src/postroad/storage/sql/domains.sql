-- name: insert
-- Register a domain; nothing when the account has it already, or another account has proven it and this claim is proven too.
INSERT INTO domains (id, account_id, name, verified_at, created_at)
VALUES ($1, $2, $3, CAST($4 AS BIGINT), $5) ON CONFLICT DO NOTHING;

-- name: by_name
-- One domain of an account by its name.
SELECT id, account_id, name, verified_at, created_at FROM domains WHERE account_id = $1 AND name = $2;

-- name: by_id
-- One domain of an account.
SELECT id, account_id, name, verified_at, created_at FROM domains WHERE account_id = $1 AND id = $2;

-- name: of_account
-- The domains of an account after a cursor, oldest first.
SELECT id, account_id, name, verified_at, created_at FROM domains WHERE account_id = $1 AND id > $2
ORDER BY id LIMIT $3;

-- name: verified_owner
-- The account that has proven a name.
SELECT account_id FROM domains WHERE name = $1 AND verified_at IS NOT NULL;

-- name: verify
-- Mark a domain as proven.
UPDATE domains SET verified_at = $3 WHERE account_id = $1 AND id = $2 AND verified_at IS NULL;

-- name: remove
-- Forget a domain.
DELETE FROM domains WHERE account_id = $1 AND id = $2;
