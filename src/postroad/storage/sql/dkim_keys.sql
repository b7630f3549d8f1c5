-- name: insert
-- A new key.
INSERT INTO dkim_keys (account_id, domain_id, selector, private_key, public_key, created_at)
VALUES ($1, $2, $3, $4, $5, $6);

-- name: newest
-- The key that signs for a domain.
SELECT account_id, domain_id, selector, private_key, public_key, created_at FROM dkim_keys
WHERE account_id = $1 AND domain_id = $2 ORDER BY created_at DESC, selector DESC LIMIT 1;

-- name: of_domains
-- The keys of an account's domains from one id to another; the newest of a domain comes last.
SELECT account_id, domain_id, selector, private_key, public_key, created_at FROM dkim_keys
WHERE account_id = $1 AND domain_id >= $2 AND domain_id <= $3 ORDER BY domain_id, created_at, selector;

-- name: remove
-- Delete the keys of a domain.
DELETE FROM dkim_keys WHERE account_id = $1 AND domain_id = $2;
