-- compatible from: 12
-- Certificates that the service obtains by itself (ACME, RFC 8555), shared by all hosts. One host orders at a time: it claims the row
-- until a time. Until the first certificate is there, its chain and its key are empty. Private keys are encrypted.
CREATE TABLE certificates (
    directory TEXT COLLATE "C" NOT NULL,
    names TEXT COLLATE "C" NOT NULL,
    chain TEXT COLLATE "C" NOT NULL,
    private_key BYTEA NOT NULL,
    issued_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    due_at BIGINT NOT NULL,
    claimed_until BIGINT NOT NULL,
    attempt_count BIGINT NOT NULL,
    error TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (directory, names)
);

CREATE TABLE acme_accounts (
    directory TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    private_key BYTEA NOT NULL,
    uri TEXT COLLATE "C" NOT NULL
);

-- Challenges of orders in progress, so that every host can answer them.
CREATE TABLE acme_challenges (
    token TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    name TEXT COLLATE "C" NOT NULL,
    kind TEXT COLLATE "C" NOT NULL CHECK (kind IN ('http-01', 'tls-alpn-01')),
    key_authorization TEXT COLLATE "C" NOT NULL,
    expires_at BIGINT NOT NULL
);
