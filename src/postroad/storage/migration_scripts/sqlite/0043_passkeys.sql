-- compatible from: 12
-- The passkeys of logins (Web Authentication). `rp_id` is the host that a passkey was made for, which the browser compares;
-- `user_handle` is random, and the same for all passkeys of a login. `sign_count` is 0 where the authenticator does not
-- count.
CREATE TABLE passkeys (
    id TEXT NOT NULL PRIMARY KEY,
    login_id TEXT NOT NULL,
    credential_id BLOB NOT NULL UNIQUE,
    public_key BLOB NOT NULL,
    sign_count INTEGER NOT NULL,
    user_handle BLOB NOT NULL,
    rp_id TEXT NOT NULL,
    transports TEXT NOT NULL,
    name TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    last_used_at INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX passkeys_by_login ON passkeys (login_id, id);

-- Challenges that were answered, as hashes, until they expire: none is answered twice, on whichever host.
CREATE TABLE used_challenges (
    challenge_hash BLOB NOT NULL PRIMARY KEY,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX used_challenges_over ON used_challenges (expires_at);
