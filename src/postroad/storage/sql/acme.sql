-- name: put_account
-- The account of a directory; the first one stays.
INSERT INTO acme_accounts (directory, private_key, uri) VALUES ($1, $2, $3)
ON CONFLICT (directory) DO NOTHING;

-- name: account
-- The account of a directory.
SELECT directory, private_key, uri FROM acme_accounts WHERE directory = $1;

-- name: put_challenge
-- A challenge of an order in progress.
INSERT INTO acme_challenges (token, name, kind, key_authorization, expires_at) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (token) DO UPDATE SET key_authorization = excluded.key_authorization, expires_at = excluded.expires_at;

-- name: challenge
-- A challenge by its token.
SELECT token, name, kind, key_authorization, expires_at FROM acme_challenges WHERE token = $1 AND expires_at > $2;

-- name: challenges
-- The challenges of a kind.
SELECT token, name, kind, key_authorization, expires_at FROM acme_challenges
WHERE kind = $1 AND expires_at > $2 ORDER BY token;

-- name: remove_challenge
-- A challenge whose order has ended.
DELETE FROM acme_challenges WHERE token = $1;

-- name: sweep
-- Challenges that a process left behind.
DELETE FROM acme_challenges WHERE expires_at <= $1;
