-- name: lock
-- The fingerprint, and the key stays the current one until the transaction ends.
SELECT fingerprint FROM installation_key FOR SHARE;
