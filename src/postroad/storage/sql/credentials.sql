-- part: credential
SELECT credentials.id, credentials.account_id, name, username, credentials.password_hash, credentials.created_at,
    last_used_at, revoked_at, creator_id, creators.email, creators.role, creators.operator_since, creators.disabled_at
FROM credentials LEFT JOIN users AS creators ON creators.id = credentials.creator_id

-- name: insert
-- A new SMTP credential.
INSERT INTO credentials (id, account_id, name, username, password_hash, created_at, last_used_at, revoked_at, creator_id)
VALUES ($1, $2, $3, $4, $5, $6, NULL, NULL, CAST($7 AS TEXT));

-- name: of_creator
-- The active credentials that a person created, oldest first.
-- include: credential
WHERE credentials.account_id = $1 AND creator_id = $2 AND revoked_at IS NULL ORDER BY credentials.id;

-- name: hand_over
-- Another person answers for the credentials that one created, or nobody does.
UPDATE credentials SET creator_id = CAST($3 AS TEXT) WHERE account_id = $1 AND creator_id = $2 AND revoked_at IS NULL;

-- name: by_username
-- The credential with this SMTP username.
-- include: credential
WHERE username = $1;

-- name: by_id
-- One credential of an account.
-- include: credential
WHERE credentials.account_id = $1 AND credentials.id = $2;

-- name: of_account
-- The credentials of an account after a cursor, oldest first: the first is the account's default.
-- include: credential
WHERE credentials.account_id = $1 AND credentials.id > $2 ORDER BY credentials.id LIMIT $3;

-- name: default_of
-- The account's first credential, revoked or not: the scope of idempotency keys must never change.
SELECT id FROM credentials WHERE account_id = $1 ORDER BY id LIMIT 1;

-- name: first_live
-- The account's oldest credential that is not revoked.
SELECT id FROM credentials WHERE account_id = $1 AND revoked_at IS NULL ORDER BY id LIMIT 1;

-- name: revoke
-- Revoke a credential.
UPDATE credentials SET revoked_at = $3 WHERE account_id = $1 AND id = $2 AND revoked_at IS NULL;

-- name: touch
-- The time of the last use.
UPDATE credentials SET last_used_at = $2 WHERE id = $1;

-- name: count
-- How many credentials an account has; ten revoked ones count as one.
SELECT COUNT(*) - COUNT(revoked_at) + COUNT(revoked_at) / 10 FROM credentials WHERE account_id = $1;
