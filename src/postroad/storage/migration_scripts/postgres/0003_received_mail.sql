-- compatible from: 1

-- Which addresses take mail for an account, and what becomes of it. `match_key` is an address, an address with any tag
-- (`support+*@in.example.com`), or every address of a domain. A route belongs to a sender domain of the account, and
-- takes mail only while that domain is verified.
CREATE TABLE inbound_routes (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    account_id TEXT COLLATE "C" NOT NULL,
    domain_id TEXT COLLATE "C" NOT NULL,
    match_key TEXT COLLATE "C" NOT NULL UNIQUE,
    action TEXT COLLATE "C" NOT NULL CHECK (action IN ('store', 'forward', 'drop')),
    forward_to TEXT COLLATE "C",
    created_at BIGINT NOT NULL
);
CREATE INDEX inbound_routes_by_account ON inbound_routes (account_id, id);

-- Mail that a route has stored. `recipient` is that of the envelope, `sender` the From field as people see it. `email_id`
-- is the message of the account that it answers. `fingerprint` is the same for the same mail to the same recipient.
-- `authentication` and `spam` are JSON objects.
CREATE TABLE received_messages (
    account_id TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    route_id TEXT COLLATE "C" NOT NULL,
    recipient TEXT COLLATE "C" NOT NULL,
    envelope_sender TEXT COLLATE "C" NOT NULL,
    sender TEXT COLLATE "C" NOT NULL,
    subject TEXT COLLATE "C" NOT NULL,
    message_id_field TEXT COLLATE "C",
    email_id TEXT COLLATE "C",
    size BIGINT NOT NULL,
    attachment_count BIGINT NOT NULL,
    authentication TEXT COLLATE "C" NOT NULL,
    spam TEXT COLLATE "C",
    client_address TEXT COLLATE "C" NOT NULL,
    fingerprint BYTEA NOT NULL,
    has_body BIGINT NOT NULL DEFAULT 1 CHECK (has_body IN (0, 1)),
    received_at BIGINT NOT NULL,
    PRIMARY KEY (account_id, id),
    UNIQUE (account_id, fingerprint)
);
CREATE INDEX received_messages_by_time ON received_messages (has_body, received_at);
CREATE INDEX received_messages_by_email ON received_messages (account_id, email_id, id) WHERE email_id IS NOT NULL;

-- Kept apart from the rows that lists read.
CREATE TABLE received_bodies (
    account_id TEXT COLLATE "C" NOT NULL,
    message_id TEXT COLLATE "C" NOT NULL,
    mime BYTEA NOT NULL,
    PRIMARY KEY (message_id, account_id)
);
ALTER TABLE received_bodies ALTER COLUMN mime SET STORAGE EXTERNAL;

-- What routes took, by UTC day and sending network, for the quotas; the whole day of the account has no network.
CREATE TABLE received_counts (
    account_id TEXT COLLATE "C" NOT NULL,
    day BIGINT NOT NULL,
    network TEXT COLLATE "C" NOT NULL,
    messages BIGINT NOT NULL,
    bytes BIGINT NOT NULL,
    PRIMARY KEY (account_id, day, network)
);
CREATE INDEX received_counts_by_day ON received_counts (day);
