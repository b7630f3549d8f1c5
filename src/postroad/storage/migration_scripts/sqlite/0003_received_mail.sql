-- compatible from: 1

-- Which addresses take mail for an account, and what becomes of it. `match_key` is an address, an address with any tag
-- (`support+*@in.example.com`), or every address of a domain. A route belongs to a sender domain of the account, and
-- takes mail only while that domain is verified.
CREATE TABLE inbound_routes (
    id TEXT NOT NULL PRIMARY KEY,
    account_id TEXT NOT NULL,
    domain_id TEXT NOT NULL,
    match_key TEXT NOT NULL UNIQUE,
    action TEXT NOT NULL CHECK (action IN ('store', 'forward', 'drop')),
    forward_to TEXT,
    created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX inbound_routes_by_account ON inbound_routes (account_id, id);

-- Mail that a route has stored. `recipient` is that of the envelope, `sender` the From field as people see it. `email_id`
-- is the message of the account that it answers. `fingerprint` is the same for the same mail to the same recipient.
-- `authentication` and `spam` are JSON objects.
CREATE TABLE received_messages (
    account_id TEXT NOT NULL,
    id TEXT NOT NULL,
    route_id TEXT NOT NULL,
    recipient TEXT NOT NULL,
    envelope_sender TEXT NOT NULL,
    sender TEXT NOT NULL,
    subject TEXT NOT NULL,
    message_id_field TEXT,
    email_id TEXT,
    size INTEGER NOT NULL,
    attachment_count INTEGER NOT NULL,
    authentication TEXT NOT NULL,
    spam TEXT,
    client_address TEXT NOT NULL,
    fingerprint BLOB NOT NULL,
    has_body INTEGER NOT NULL DEFAULT 1 CHECK (has_body IN (0, 1)),
    received_at INTEGER NOT NULL,
    PRIMARY KEY (account_id, id),
    UNIQUE (account_id, fingerprint)
) STRICT, WITHOUT ROWID;
CREATE INDEX received_messages_by_time ON received_messages (has_body, received_at);
CREATE INDEX received_messages_by_email ON received_messages (account_id, email_id, id) WHERE email_id IS NOT NULL;

-- Kept apart from the rows that lists read.
CREATE TABLE received_bodies (
    account_id TEXT NOT NULL,
    message_id TEXT NOT NULL,
    mime BLOB NOT NULL,
    PRIMARY KEY (message_id, account_id)
) STRICT;

-- What routes took, by UTC day and sending network, for the quotas; the whole day of the account has no network.
CREATE TABLE received_counts (
    account_id TEXT NOT NULL,
    day INTEGER NOT NULL,
    network TEXT NOT NULL,
    messages INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    PRIMARY KEY (account_id, day, network)
) STRICT, WITHOUT ROWID;
CREATE INDEX received_counts_by_day ON received_counts (day);
