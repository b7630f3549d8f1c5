-- compatible from: 12
-- The passkeys of logins (Web Authentication). `rp_id` is the host that a passkey was made for, which the browser compares;
-- `user_handle` is random, and the same for all passkeys of a login. `sign_count` is 0 where the authenticator does not
-- count.
CREATE TABLE passkeys (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    login_id TEXT COLLATE "C" NOT NULL,
    credential_id BYTEA NOT NULL UNIQUE,
    public_key BYTEA NOT NULL,
    sign_count BIGINT NOT NULL,
    user_handle BYTEA NOT NULL,
    rp_id TEXT COLLATE "C" NOT NULL,
    transports TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    last_used_at BIGINT
);
CREATE INDEX passkeys_by_login ON passkeys (login_id, id);

-- Challenges that were answered, as hashes, until they expire: none is answered twice, on whichever host.
CREATE TABLE used_challenges (
    challenge_hash BYTEA NOT NULL PRIMARY KEY,
    expires_at BIGINT NOT NULL
);
CREATE INDEX used_challenges_over ON used_challenges (expires_at);
