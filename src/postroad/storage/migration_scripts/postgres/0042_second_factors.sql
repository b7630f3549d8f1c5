-- compatible from: 12
-- The authenticator app of a login (RFC 6238). `secret` is encrypted; `confirmed_at` is empty until a first code was right,
-- and before that it is no factor. `last_step` is the step of the last code that was accepted: no code works twice.
CREATE TABLE totp_secrets (
    login_id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    secret BYTEA NOT NULL,
    created_at BIGINT NOT NULL,
    confirmed_at BIGINT,
    last_step BIGINT NOT NULL
);

-- Recovery codes that were not used yet, as hashes.
CREATE TABLE recovery_codes (
    login_id TEXT COLLATE "C" NOT NULL,
    code_hash BYTEA NOT NULL,
    PRIMARY KEY (login_id, code_hash)
);

-- Logins that wait for their second factor: the password was right, and `epoch` was its `tokens_valid_from`. `invitation` is
-- the hash of the password link that the login then joins an account with.
CREATE TABLE pending_logins (
    token_hash BYTEA NOT NULL PRIMARY KEY,
    login_id TEXT COLLATE "C" NOT NULL,
    epoch BIGINT NOT NULL,
    methods TEXT COLLATE "C" NOT NULL,
    expires_at BIGINT NOT NULL,
    invitation BYTEA
);
CREATE INDEX pending_logins_over ON pending_logins (expires_at);

-- Since when the users of an account need a second factor; none for other accounts.
ALTER TABLE accounts ADD COLUMN second_factor_since BIGINT;

-- Whether a password link also removes the second factors of its user.
ALTER TABLE password_links ADD COLUMN is_recovery BIGINT NOT NULL DEFAULT 0;
