-- name: find
-- A key that is still valid, with its message.
SELECT credential_id, key, body_hash, message_id, response FROM idempotency_keys
WHERE credential_id = $1 AND key = $2 AND expires_at > $3;

-- name: insert
-- The keys of accepted messages; an expired one is replaced.
INSERT INTO idempotency_keys (credential_id, key, account_id, body_hash, message_id, expires_at, response)
VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT (credential_id, key) DO UPDATE
SET body_hash = excluded.body_hash, message_id = excluded.message_id, expires_at = excluded.expires_at,
    response = excluded.response;

-- name: sweep
-- Delete expired keys, up to a limit.
DELETE FROM idempotency_keys WHERE (credential_id, key) IN (
    SELECT credential_id, key FROM idempotency_keys WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2);
