-- name: find
-- Keys that are still valid, with their messages: one index lookup for each, however large the table.
SELECT wanted.credential_id, wanted.key, stored.body_hash, stored.message_id, stored.response
FROM unnest($1::text[], $2::text[], $3::bigint[]) AS wanted (credential_id, key, now)
CROSS JOIN LATERAL (
    SELECT body_hash, message_id, response FROM idempotency_keys
    WHERE credential_id = wanted.credential_id AND key = wanted.key AND expires_at > wanted.now LIMIT 1) AS stored;

-- name: insert
-- The keys of accepted messages; an expired one is replaced.
INSERT INTO idempotency_keys (credential_id, key, account_id, body_hash, message_id, expires_at, response)
SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bytea[], $5::text[], $6::bigint[], $7::bytea[])
ON CONFLICT (credential_id, key) DO UPDATE
SET body_hash = excluded.body_hash, message_id = excluded.message_id, expires_at = excluded.expires_at,
    response = excluded.response;

-- name: sweep
-- Delete expired keys, up to a limit. Locked ones, which are being used again, are skipped: a sweep never waits.
DELETE FROM idempotency_keys WHERE (credential_id, key) IN (
    SELECT credential_id, key FROM idempotency_keys WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2
    FOR UPDATE SKIP LOCKED);
