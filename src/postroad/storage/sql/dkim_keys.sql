-- part: columns
account_id, domain_id, selector, private_key, public_key, created_at, algorithm, status, published_at, retired_at

-- name: insert
-- A new key.
INSERT INTO dkim_keys (
-- include: columns
)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, CAST($9 AS BIGINT), CAST($10 AS BIGINT));

-- name: of_domain
-- All keys of a domain, oldest first.
SELECT
-- include: columns
FROM dkim_keys WHERE account_id = $1 AND domain_id = $2 ORDER BY created_at, selector;

-- name: of_domains
-- The RSA keys that sign for an account's domains from one id to another; the newest of a domain comes last.
SELECT
-- include: columns
FROM dkim_keys
WHERE account_id = $1 AND domain_id >= $2 AND domain_id <= $3 AND algorithm = 'rsa' AND status = 'current'
ORDER BY domain_id, created_at, selector;

-- name: page
-- The keys of all domains with a private key, after a place.
SELECT
-- include: columns
FROM dkim_keys WHERE (account_id, domain_id, selector) > ($1, $2, $3) AND LENGTH(private_key) > 0
ORDER BY account_id, domain_id, selector LIMIT $4;

-- name: update
-- What changes in the life of a key.
UPDATE dkim_keys SET private_key = $4, status = $5, published_at = CAST($6 AS BIGINT), retired_at = CAST($7 AS BIGINT)
WHERE account_id = $1 AND domain_id = $2 AND selector = $3;

-- name: remove_one
-- Delete one key of a domain.
DELETE FROM dkim_keys WHERE account_id = $1 AND domain_id = $2 AND selector = $3;

-- name: remove
-- Delete the keys of a domain.
DELETE FROM dkim_keys WHERE account_id = $1 AND domain_id = $2;
