-- part: approval
SELECT id, account_id, key_id, identity, idempotency_key, body_hash, is_batch, is_test, body, recipients, request_id,
    state, created_at
FROM approvals

-- name: insert
-- A send that waits. One with the same idempotency key stays as it is.
INSERT INTO approvals (id, account_id, key_id, identity, idempotency_key, body_hash, is_batch, is_test, body, recipients,
    request_id, state, created_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
ON CONFLICT (identity, idempotency_key) DO NOTHING;

-- name: by_key
-- The send with this idempotency key.
-- include: approval
WHERE identity = $1 AND idempotency_key = $2;

-- name: by_id
-- A send of an account.
-- include: approval
WHERE account_id = $1 AND id = $2;

-- name: of_account
-- The latest sends of an account, newest first, without what they send.
SELECT id, account_id, key_id, identity, idempotency_key, body_hash, is_batch, is_test, NULL, recipients, request_id,
    state, created_at
FROM approvals WHERE account_id = $1 ORDER BY id DESC LIMIT $2;

-- name: count
-- How many sends of an account have this state and are from after a time, and how many of them are of a key.
SELECT COUNT(*), COUNT(CASE WHEN key_id = $2 THEN 1 END) FROM approvals
WHERE account_id = $1 AND state = $3 AND created_at > $4;

-- name: set_state
-- Change the state, if it is one of these.
UPDATE approvals SET state = $3 WHERE account_id = $1 AND id = $2 AND state IN ($4, $5, $6);

-- name: decide
-- The state that stays, if it is one of these; what was asked for is needed no longer.
UPDATE approvals SET state = $3, body = $4 WHERE account_id = $1 AND id = $2 AND state IN ($5, $6, $7);

-- name: sweep_bodies
-- Delete what was asked for by sends that nobody decided in time.
UPDATE approvals SET body = $2 WHERE id IN (
    SELECT id FROM approvals WHERE created_at < $1 AND LENGTH(body) > 0 ORDER BY created_at LIMIT $3);

-- name: sweep
-- Delete old sends, whatever became of them.
DELETE FROM approvals WHERE id IN (SELECT id FROM approvals WHERE created_at < $1 ORDER BY created_at LIMIT $2);
