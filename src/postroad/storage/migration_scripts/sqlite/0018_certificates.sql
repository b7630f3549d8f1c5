-- compatible from: 12
-- Certificates that the service obtains by itself (ACME, RFC 8555), shared by all hosts. One host orders at a time: it claims the row
-- until a time. Until the first certificate is there, its chain and its key are empty. Private keys are encrypted.
CREATE TABLE certificates (
    directory TEXT NOT NULL,
    names TEXT NOT NULL,
    chain TEXT NOT NULL,
    private_key BLOB NOT NULL,
    issued_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    claimed_until INTEGER NOT NULL,
    attempt_count INTEGER NOT NULL,
    error TEXT NOT NULL,
    PRIMARY KEY (directory, names)
) STRICT, WITHOUT ROWID;

CREATE TABLE acme_accounts (
    directory TEXT NOT NULL PRIMARY KEY,
    private_key BLOB NOT NULL,
    uri TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Challenges of orders in progress, so that every host can answer them.
CREATE TABLE acme_challenges (
    token TEXT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('http-01', 'tls-alpn-01')),
    key_authorization TEXT NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
