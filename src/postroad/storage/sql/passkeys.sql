-- part: columns
id, login_id, credential_id, public_key, sign_count, user_handle, rp_id, transports, name, created_at, last_used_at

-- name: of_login
-- The passkeys of a login, oldest first.
SELECT
-- include: columns
FROM passkeys WHERE login_id = $1 ORDER BY id;

-- name: by_credential
-- The passkey that an authenticator names.
SELECT
-- include: columns
FROM passkeys WHERE credential_id = $1;

-- name: insert
-- A new passkey; nothing if its credential is known.
INSERT INTO passkeys (
-- include: columns
) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) ON CONFLICT (credential_id) DO NOTHING;

-- name: use
-- A use of a passkey, unless another one has counted as far: the authenticator may have been copied.
UPDATE passkeys SET sign_count = $2, last_used_at = $3 WHERE id = $1 AND (sign_count < $2 OR (sign_count = 0 AND $2 = 0));

-- name: remove
-- Delete a passkey of a login.
DELETE FROM passkeys WHERE login_id = $1 AND id = $2;

-- name: remove_all
-- Delete the passkeys of a login.
DELETE FROM passkeys WHERE login_id = $1;

-- name: use_challenge
-- A challenge that is answered now; nothing if it was before.
INSERT INTO used_challenges (challenge_hash, expires_at) VALUES ($1, $2) ON CONFLICT (challenge_hash) DO NOTHING;

-- name: sweep_challenges
-- Delete challenges that have expired, up to a limit.
DELETE FROM used_challenges WHERE challenge_hash IN (
    SELECT challenge_hash FROM used_challenges WHERE expires_at <= $1 LIMIT $2);
