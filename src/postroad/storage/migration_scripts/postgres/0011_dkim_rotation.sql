-- Several DKIM keys for a domain. A generation is an RSA key and an Ed25519 key (RFC 8463): `next` waits for its record in DNS,
-- `current` signs, and `old` has signed mail that may still be on its way. An Ed25519 key signs only while its record is
-- published. The private key of an old generation is emptied when the overlap ends.
-- Rows of an older version are RSA keys that sign. An older process takes the newest key of a domain, and of two from one moment
-- the one whose selector sorts last: rotate no key before all hosts run this version.

ALTER TABLE dkim_keys ADD COLUMN algorithm TEXT COLLATE "C" NOT NULL DEFAULT 'rsa' CHECK (algorithm IN ('rsa', 'ed25519'));
ALTER TABLE dkim_keys ADD COLUMN status TEXT COLLATE "C" NOT NULL DEFAULT 'current'
    CHECK (status IN ('next', 'current', 'old'));
ALTER TABLE dkim_keys ADD COLUMN published_at BIGINT;
ALTER TABLE dkim_keys ADD COLUMN retired_at BIGINT;

-- More purposes. As in SQLite, which cannot change a CHECK, the table is copied.
CREATE TABLE domain_checks_new (
    account_id TEXT COLLATE "C" NOT NULL,
    domain_id TEXT COLLATE "C" NOT NULL,
    purpose TEXT COLLATE "C" NOT NULL CHECK (
        purpose IN (
            'dkim', 'dkim_next', 'dkim_old', 'dkim_ed25519', 'dkim_ed25519_next', 'dkim_ed25519_old', 'spf', 'return_path', 'dmarc'
        )
    ),
    state TEXT COLLATE "C" NOT NULL CHECK (state IN ('ok', 'missing', 'wrong', 'unknown')),
    detail TEXT COLLATE "C" NOT NULL,
    found TEXT COLLATE "C" NOT NULL,
    checked_at BIGINT NOT NULL,
    PRIMARY KEY (account_id, domain_id, purpose)
);
INSERT INTO domain_checks_new SELECT account_id, domain_id, purpose, state, detail, found, checked_at FROM domain_checks;
DROP TABLE domain_checks;
ALTER TABLE domain_checks_new RENAME TO domain_checks;
ALTER TABLE domain_checks RENAME CONSTRAINT domain_checks_new_pkey TO domain_checks_pkey;
ALTER TABLE domain_checks RENAME CONSTRAINT domain_checks_new_purpose_check TO domain_checks_purpose_check;
ALTER TABLE domain_checks RENAME CONSTRAINT domain_checks_new_state_check TO domain_checks_state_check;
