-- part: key
SELECT api_keys.id, api_keys.account_id, credential_id, api_keys.name, hint, scopes, api_keys.created_at,
    api_keys.last_used_at, COALESCE(api_keys.revoked_at, credentials.revoked_at), domains, networks, templates,
    recipients_per_day, credit_budget, expires_at, approval_above, day, recipients, credits, created_by,
    creators.email, creators.role, creators.operator_since, creators.disabled_at
FROM api_keys LEFT JOIN credentials ON credentials.id = api_keys.credential_id
    LEFT JOIN api_key_usage ON api_key_usage.key_id = api_keys.id
    LEFT JOIN users AS creators ON creators.id = api_keys.created_by

-- name: insert
-- A new API key, stored as the hash of its secret.
INSERT INTO api_keys (id, account_id, credential_id, name, key_hash, hint, scopes, created_at, last_used_at, revoked_at,
    created_by, domains, networks, templates, recipients_per_day, credit_budget, expires_at, approval_above)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, NULL, NULL, $9, $10, $11, $12, $13, $14, $15, $16);

-- name: by_hash
-- The key with this hash, revoked when the credential that it was issued under is.
-- include: key
WHERE key_hash = $1;

-- name: by_id
-- A key of an account.
-- include: key
WHERE api_keys.account_id = $1 AND api_keys.id = $2;

-- name: of_creator
-- The active keys that a person created, oldest first.
-- include: key
WHERE api_keys.account_id = $1 AND created_by = $2 AND api_keys.revoked_at IS NULL AND credentials.revoked_at IS NULL
ORDER BY api_keys.id;

-- name: hand_over
-- Another person answers for the keys that one created, or nobody does.
UPDATE api_keys SET created_by = CAST($3 AS TEXT) WHERE account_id = $1 AND created_by = $2 AND revoked_at IS NULL;

-- name: of_account
-- The keys of an account after a cursor, oldest first; revoked when their credential is.
-- include: key
WHERE api_keys.account_id = $1 AND api_keys.id > $2 ORDER BY api_keys.id LIMIT $3;

-- name: expiring
-- Keys that expire after a time and until another.
-- include: key
WHERE expires_at > $1 AND expires_at <= $2 AND api_keys.revoked_at IS NULL AND credentials.revoked_at IS NULL
ORDER BY expires_at LIMIT $3;

-- name: change
-- Name, scopes and limits of a key.
UPDATE api_keys SET name = $3, scopes = $4, domains = $5, networks = $6, templates = $7, recipients_per_day = $8,
    credit_budget = $9, expires_at = $10, approval_above = $11
WHERE account_id = $1 AND id = $2;

-- name: budgets
-- The limits that are counted, and what was used of them.
SELECT api_keys.id, recipients_per_day, credit_budget, day, recipients, credits
FROM api_keys LEFT JOIN api_key_usage ON api_key_usage.key_id = api_keys.id
WHERE api_keys.id = $1;

-- name: put_usage
-- What a key has sent.
INSERT INTO api_key_usage (key_id, account_id, day, recipients, credits) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (key_id) DO UPDATE SET day = excluded.day, recipients = excluded.recipients, credits = excluded.credits;

-- name: revoke
-- Revoke a key.
UPDATE api_keys SET revoked_at = $3 WHERE account_id = $1 AND id = $2 AND revoked_at IS NULL RETURNING name;

-- name: touch
-- The time of the last use.
UPDATE api_keys SET last_used_at = $2 WHERE id = $1;

-- name: count
-- How many keys an account has; ten revoked ones count as one.
SELECT COUNT(*) - COUNT(COALESCE(api_keys.revoked_at, credentials.revoked_at))
    + COUNT(COALESCE(api_keys.revoked_at, credentials.revoked_at)) / 10
FROM api_keys LEFT JOIN credentials ON credentials.id = api_keys.credential_id WHERE api_keys.account_id = $1;
