-- compatible from: 12
-- The authenticator app of a login (RFC 6238). `secret` is encrypted; `confirmed_at` is empty until a first code was right,
-- and before that it is no factor. `last_step` is the step of the last code that was accepted: no code works twice.
CREATE TABLE totp_secrets (
    login_id TEXT NOT NULL PRIMARY KEY,
    secret BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    confirmed_at INTEGER,
    last_step INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Recovery codes that were not used yet, as hashes.
CREATE TABLE recovery_codes (
    login_id TEXT NOT NULL,
    code_hash BLOB NOT NULL,
    PRIMARY KEY (login_id, code_hash)
) STRICT, WITHOUT ROWID;

-- Logins that wait for their second factor: the password was right, and `epoch` was its `tokens_valid_from`. `invitation` is
-- the hash of the password link that the login then joins an account with.
CREATE TABLE pending_logins (
    token_hash BLOB NOT NULL PRIMARY KEY,
    login_id TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    methods TEXT NOT NULL,
    expires_at INTEGER NOT NULL,
    invitation BLOB
) STRICT, WITHOUT ROWID;
CREATE INDEX pending_logins_over ON pending_logins (expires_at);

-- Since when the users of an account need a second factor; none for other accounts.
ALTER TABLE accounts ADD COLUMN second_factor_since INTEGER;

-- Whether a password link also removes the second factors of its user.
ALTER TABLE password_links ADD COLUMN is_recovery INTEGER NOT NULL DEFAULT 0;
