-- compatible from: 1
-- The whole schema of the first release, by subject: accounts and people, domains and templates, mail, the queue,
-- webhooks, operations.
--
-- Times are microseconds since 1970, days and hours are counted from then (UTC). Ids begin with the time of their
-- creation, so they sort by it and are cursors. Words in a list are separated by blanks.
-- Keys of what belongs to an account contain it, so that tables can be split by it later. It comes first in what is listed
-- by account. What is found only by its message begins with the message id, which sorts by time: mail written together is
-- on few pages.
-- There are no foreign keys on purpose: `postroad verify` proves what they would, and the hot path does not pay for them
-- on every row.
-- Text sorts by its bytes, as in SQLite: ids are cursors.


-- ACCOUNTS AND PEOPLE

-- `name_key` is the name as it is compared; a removed account has none, so that its name is free. `closed_at` also
-- suspends. The data of an account with `removed_at` is being deleted, and the account after it.
-- `unlimited`: it sends without credits. `has_uncharged`: some of its mail was not charged; only then does a result look
-- it up. `subscribed_events` are the event types that its webhooks name, as the account's lock reads them: accepting and
-- deferring mail look for webhooks only if one of them wants to know.
-- `request_rate` and `recipients_per_day` are set by an operator; NULL is the setting, or no limit.
-- `rate_full_at` and `rate_seen_at` are the bucket of its sends (GCRA): when it is full again, and the latest time that a
-- host has seen. Written under the account's lock, when mail is accepted or refused, so that all processes and hosts count
-- as one.
CREATE TABLE accounts (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    name TEXT COLLATE "C" NOT NULL,
    name_key TEXT COLLATE "C",
    status TEXT COLLATE "C" NOT NULL CHECK (status IN ('active', 'suspended')),
    suspended_reason TEXT COLLATE "C",
    suspended_by TEXT COLLATE "C" CHECK (suspended_by IN ('operator', 'bounce_guard')),
    suspended_at BIGINT,
    closed_at BIGINT,
    removed_at BIGINT,
    available BIGINT NOT NULL CHECK (available >= 0),
    reserved BIGINT NOT NULL CHECK (reserved >= 0),
    unlimited BIGINT NOT NULL DEFAULT 0 CHECK (unlimited IN (0, 1)),
    has_uncharged BIGINT NOT NULL DEFAULT 0 CHECK (has_uncharged IN (0, 1)),
    subscribed_events TEXT COLLATE "C" NOT NULL DEFAULT '',
    request_rate BIGINT,
    recipients_per_day BIGINT,
    second_factor_since BIGINT,
    rate_full_at BIGINT NOT NULL DEFAULT 0,
    rate_seen_at BIGINT NOT NULL DEFAULT 0,
    created_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX accounts_by_name ON accounts (name_key);
CREATE INDEX accounts_suspended ON accounts (suspended_at) WHERE suspended_by = 'bounce_guard';
CREATE INDEX accounts_removed ON accounts (removed_at) WHERE removed_at IS NOT NULL;

-- Every change of the two balances of an account.
CREATE TABLE ledger (
    account_id TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    kind TEXT COLLATE "C" NOT NULL CHECK (kind IN ('grant', 'reserve', 'settle', 'release')),
    available BIGINT NOT NULL,
    reserved BIGINT NOT NULL,
    message_id TEXT COLLATE "C",
    note TEXT COLLATE "C",
    created_at BIGINT NOT NULL,
    PRIMARY KEY (account_id, id)
);

-- What a person logs in with. Several logins may have the same email: nobody can occupy an address.
CREATE TABLE logins (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    email TEXT COLLATE "C" NOT NULL,
    email_key TEXT COLLATE "C" NOT NULL,
    password_hash TEXT COLLATE "C",
    tokens_valid_from BIGINT NOT NULL,
    created_at BIGINT NOT NULL
);
CREATE INDEX logins_by_email ON logins (email_key, id);

-- The members of accounts: one person may belong to several. `joined_at` is when the user first had a login; who was
-- invited and has not come yet has neither. `operator_since`: since when the user operates the installation.
-- `time_zone` is a name of the IANA database.
CREATE TABLE users (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    account_id TEXT COLLATE "C" NOT NULL,
    login_id TEXT COLLATE "C",
    email TEXT COLLATE "C" NOT NULL,
    email_key TEXT COLLATE "C" NOT NULL,
    role TEXT COLLATE "C" NOT NULL CHECK (role IN ('owner', 'admin', 'developer', 'analyst', 'member', 'read_only')),
    tokens_valid_from BIGINT NOT NULL,
    time_zone TEXT COLLATE "C",
    operator_since BIGINT,
    disabled_at BIGINT,
    joined_at BIGINT,
    last_login_at BIGINT,
    created_at BIGINT NOT NULL,
    UNIQUE (account_id, email_key)
);
CREATE INDEX users_by_account ON users (account_id, id);
CREATE INDEX users_by_email ON users (email_key, id);
CREATE INDEX users_by_login ON users (login_id) WHERE login_id IS NOT NULL;

-- Browser sessions and API tokens; one without a row has ended. `methods` are how the person logged in, `confirmed_at` is
-- when they last proved who they are. What was made in a session ends with it: `parent_id`.
CREATE TABLE sessions (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    login_id TEXT COLLATE "C" NOT NULL,
    user_id TEXT COLLATE "C" NOT NULL,
    account_id TEXT COLLATE "C" NOT NULL,
    kind TEXT COLLATE "C" NOT NULL CHECK (kind IN ('browser', 'token')),
    name TEXT COLLATE "C" NOT NULL,
    device TEXT COLLATE "C" NOT NULL,
    network TEXT COLLATE "C" NOT NULL,
    methods TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    last_used_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    confirmed_at BIGINT NOT NULL,
    parent_id TEXT COLLATE "C"
);
CREATE INDEX sessions_by_login ON sessions (login_id, id);
CREATE INDEX sessions_by_user ON sessions (user_id, id);
CREATE INDEX sessions_by_account ON sessions (account_id);
CREATE INDEX sessions_by_parent ON sessions (parent_id) WHERE parent_id IS NOT NULL;
CREATE INDEX sessions_over ON sessions (expires_at);

-- Links by which a user chooses a password, once; a new one replaces the one before. One of an operator acts on the login
-- as a whole, one of an owner on the user of that account. `is_recovery`: it also removes the second factors.
CREATE TABLE password_links (
    token_hash BYTEA NOT NULL PRIMARY KEY,
    account_id TEXT COLLATE "C" NOT NULL,
    user_id TEXT COLLATE "C" NOT NULL,
    by_operator BIGINT NOT NULL DEFAULT 0,
    is_recovery BIGINT NOT NULL DEFAULT 0,
    expires_at BIGINT NOT NULL
);
CREATE INDEX password_links_of_user ON password_links (user_id);
CREATE INDEX password_links_over ON password_links (expires_at);

-- Logins that wait for their second factor: the password was right, and `epoch` was its `tokens_valid_from`. `invitation`
-- is the hash of the password link with which the login then joins an account.
CREATE TABLE pending_logins (
    token_hash BYTEA NOT NULL PRIMARY KEY,
    login_id TEXT COLLATE "C" NOT NULL,
    epoch BIGINT NOT NULL,
    methods TEXT COLLATE "C" NOT NULL,
    invitation BYTEA,
    expires_at BIGINT NOT NULL
);
CREATE INDEX pending_logins_over ON pending_logins (expires_at);

-- The authenticator app of a login (RFC 6238). `secret` is encrypted; before a first code was right, which sets
-- `confirmed_at`, it is no factor. `last_step` is the step of the last code that was accepted: no code works twice.
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

-- The passkeys of logins (Web Authentication). `rp_id` is the host that a passkey was made for, which the browser
-- compares; `user_handle` is random, and the same for all passkeys of a login. `sign_count` is 0 where the authenticator
-- does not count.
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

-- The OpenID Connect provider with which users of an account log in, chosen by its owners. The secret of the client is
-- encrypted. `group_roles` is a JSON object: a role by group, in the order in which they count.
CREATE TABLE sso_connections (
    account_id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    issuer TEXT COLLATE "C" NOT NULL,
    client_id TEXT COLLATE "C" NOT NULL,
    client_secret BYTEA,
    scopes TEXT COLLATE "C" NOT NULL,
    role TEXT COLLATE "C" NOT NULL,
    groups_claim TEXT COLLATE "C" NOT NULL,
    group_roles TEXT COLLATE "C" NOT NULL,
    creates_users BIGINT NOT NULL,
    allows_passwords BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);

-- The email domains of such a connection. The account must also have verified the domain.
CREATE TABLE sso_domains (
    domain TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    account_id TEXT COLLATE "C" NOT NULL
);
CREATE INDEX sso_domains_by_account ON sso_domains (account_id);

-- Who somebody is at a provider: the subject, which unlike an email never changes hands. It counts for one connection;
-- that of the installation has an empty account id.
CREATE TABLE sso_identities (
    account_id TEXT COLLATE "C" NOT NULL,
    issuer TEXT COLLATE "C" NOT NULL,
    subject TEXT COLLATE "C" NOT NULL,
    login_id TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (account_id, issuer, subject)
);
CREATE INDEX sso_identities_by_login ON sso_identities (login_id);

-- Failed logins, counted for all processes and hosts. `counter` is a digest of a name, a network or both: nothing that a
-- stranger typed is stored. `clear_at` is when all of its failures are forgotten.
CREATE TABLE login_failures (
    counter BYTEA NOT NULL PRIMARY KEY,
    clear_at BIGINT NOT NULL
);
CREATE INDEX login_failures_over ON login_failures (clear_at);

-- The latest few networks from which a login or an SMTP credential was used.
CREATE TABLE known_networks (
    user_id TEXT COLLATE "C" NOT NULL,
    network TEXT COLLATE "C" NOT NULL,
    last_login_at BIGINT NOT NULL,
    PRIMARY KEY (user_id, network)
);
CREATE INDEX known_networks_over ON known_networks (last_login_at);

-- SMTP credentials. `creator_id` is NULL for those of the command line.
CREATE TABLE credentials (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    account_id TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    username TEXT COLLATE "C" NOT NULL UNIQUE,
    password_hash TEXT COLLATE "C" NOT NULL,
    creator_id TEXT COLLATE "C",
    created_at BIGINT NOT NULL,
    last_used_at BIGINT,
    revoked_at BIGINT
);
CREATE INDEX credentials_by_account ON credentials (account_id, id);

-- API keys and their limits: domains, networks and templates are words, none mean no limit. A send to more recipients
-- than `approval_above` waits for the approval of a person. The key of an operator is none once its creator is not.
CREATE TABLE api_keys (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    account_id TEXT COLLATE "C" NOT NULL,
    credential_id TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    key_hash BYTEA NOT NULL UNIQUE,
    hint TEXT COLLATE "C" NOT NULL,
    scopes TEXT COLLATE "C" NOT NULL,
    domains TEXT COLLATE "C" NOT NULL DEFAULT '',
    networks TEXT COLLATE "C" NOT NULL DEFAULT '',
    templates TEXT COLLATE "C" NOT NULL DEFAULT '',
    recipients_per_day BIGINT,
    credit_budget BIGINT,
    approval_above BIGINT,
    created_by TEXT COLLATE "C",
    created_at BIGINT NOT NULL,
    expires_at BIGINT,
    last_used_at BIGINT,
    revoked_at BIGINT
);
CREATE INDEX api_keys_by_account ON api_keys (account_id, id);
CREATE INDEX api_keys_by_expiry ON api_keys (expires_at) WHERE expires_at IS NOT NULL;

-- What keys with a limit have sent; written under the lock of the account. Not in `api_keys`, because the time of the last
-- use is written there without that lock.
CREATE TABLE api_key_usage (
    key_id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    account_id TEXT COLLATE "C" NOT NULL,
    day BIGINT NOT NULL,
    recipients BIGINT NOT NULL,
    credits BIGINT NOT NULL
);
CREATE INDEX api_key_usage_by_account ON api_key_usage (account_id);

-- Sends of API keys that wait for the approval of a person.
CREATE TABLE approvals (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    account_id TEXT COLLATE "C" NOT NULL,
    key_id TEXT COLLATE "C" NOT NULL,
    identity TEXT COLLATE "C" NOT NULL,
    idempotency_key TEXT COLLATE "C" NOT NULL,
    body_hash BYTEA NOT NULL,
    is_batch BIGINT NOT NULL,
    is_test BIGINT NOT NULL,
    recipients BIGINT NOT NULL,
    request_id TEXT COLLATE "C" NOT NULL,
    state TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    body BYTEA NOT NULL,
    UNIQUE (identity, idempotency_key)
);
CREATE INDEX approvals_by_account ON approvals (account_id, id);
CREATE INDEX approvals_by_time ON approvals (created_at);
CREATE INDEX approvals_by_state ON approvals (account_id, state, created_at, key_id);

-- Buckets of the other rates of an account, by name. Few rows that change often: no index but its key.
CREATE TABLE rates (
    name TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    account_id TEXT COLLATE "C" NOT NULL,
    full_at BIGINT NOT NULL,
    seen_at BIGINT NOT NULL
);

-- Counts the changes to everything that decides who may do what, so that every process notices a revocation.
CREATE TABLE access_version (
    only_row BIGINT NOT NULL PRIMARY KEY CHECK (only_row = 1),
    version BIGINT NOT NULL
);
INSERT INTO access_version VALUES (1, 0);

-- Who did what in an account. `actor` is what a person was called then, because people go; what an operator or the service
-- itself has done has no person. `subject` is what it was done to, in words that people know.
CREATE TABLE audit_log (
    account_id TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    actor_kind TEXT COLLATE "C" NOT NULL CHECK (actor_kind IN ('person', 'api_key', 'operator', 'service')),
    user_id TEXT COLLATE "C",
    actor TEXT COLLATE "C" NOT NULL,
    action TEXT COLLATE "C" NOT NULL,
    subject TEXT COLLATE "C" NOT NULL,
    detail TEXT COLLATE "C" NOT NULL,
    request_id TEXT COLLATE "C" NOT NULL,
    client_address TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (account_id, id)
);
CREATE INDEX audit_log_over ON audit_log (created_at);

-- Refused and failed requests of an account, and changes by its keys, of the last days. `body` is what may be shown of the
-- body, and `skipped` counts those after this one that are not here because too many came at once.
CREATE TABLE request_log (
    account_id TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    caller_id TEXT COLLATE "C" NOT NULL,
    method TEXT COLLATE "C" NOT NULL,
    path TEXT COLLATE "C" NOT NULL,
    status BIGINT NOT NULL,
    code TEXT COLLATE "C" NOT NULL,
    error TEXT COLLATE "C" NOT NULL,
    client_address TEXT COLLATE "C" NOT NULL,
    body_size BIGINT NOT NULL,
    body BYTEA NOT NULL,
    skipped BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (account_id, id)
);
CREATE INDEX request_log_over ON request_log (created_at);

-- Searches that an account has given a name, for the page of messages.
CREATE TABLE saved_views (
    account_id TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    search TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (account_id, id),
    UNIQUE (account_id, name)
);


-- DOMAINS AND TEMPLATES

-- Sender domains. `verified_by` is whose word counts: `dns` is asked again and again, and `failing_since` is when it began
-- to say no. `check_at` is when it is asked next, `check_requested_at` when somebody last had it asked at once.
-- `warm`: the operator says that it needs no warm-up. `return_path_domain` is the subdomain for return paths whose MX
-- record the last check found; empty: envelope senders are at the domain.
CREATE TABLE domains (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    account_id TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    verified_at BIGINT,
    verified_by TEXT COLLATE "C" CHECK (verified_by IN ('operator', 'dns')),
    failing_since BIGINT,
    check_at BIGINT NOT NULL DEFAULT 0,
    check_requested_at BIGINT NOT NULL DEFAULT 0,
    warm BIGINT NOT NULL DEFAULT 0 CHECK (warm IN (0, 1)),
    return_path_domain TEXT COLLATE "C" NOT NULL DEFAULT '',
    created_at BIGINT NOT NULL,
    UNIQUE (account_id, name)
);
CREATE INDEX domains_by_account ON domains (account_id, id);
CREATE INDEX domains_to_check ON domains (check_at);
-- A name can be claimed by many accounts, but proven by one only.
CREATE UNIQUE INDEX domains_verified ON domains (name) WHERE verified_at IS NOT NULL;

-- Keys that sign for a domain (RFC 6376). A generation is an RSA key and an Ed25519 key (RFC 8463): `next` waits for its
-- record in DNS, `current` signs, and `old` has signed mail that may still be on its way. An Ed25519 key signs only while
-- its record is published. Private keys are encrypted; that of an old generation is emptied when the overlap ends.
CREATE TABLE dkim_keys (
    account_id TEXT COLLATE "C" NOT NULL,
    domain_id TEXT COLLATE "C" NOT NULL,
    selector TEXT COLLATE "C" NOT NULL,
    algorithm TEXT COLLATE "C" NOT NULL DEFAULT 'rsa' CHECK (algorithm IN ('rsa', 'ed25519')),
    status TEXT COLLATE "C" NOT NULL DEFAULT 'current' CHECK (status IN ('next', 'current', 'old')),
    private_key BYTEA NOT NULL,
    public_key BYTEA NOT NULL,
    created_at BIGINT NOT NULL,
    published_at BIGINT,
    retired_at BIGINT,
    PRIMARY KEY (account_id, domain_id, selector)
);

-- What DNS last said of each record that a domain should have; `found` are the records of the same kind that stand there.
CREATE TABLE domain_checks (
    account_id TEXT COLLATE "C" NOT NULL,
    domain_id TEXT COLLATE "C" NOT NULL,
    purpose TEXT COLLATE "C" NOT NULL CHECK (purpose IN ('dkim', 'dkim_next', 'dkim_old', 'dkim_ed25519', 'dkim_ed25519_next',
        'dkim_ed25519_old', 'spf', 'return_path', 'dmarc')),
    state TEXT COLLATE "C" NOT NULL CHECK (state IN ('ok', 'missing', 'wrong', 'unknown')),
    detail TEXT COLLATE "C" NOT NULL,
    found TEXT COLLATE "C" NOT NULL,
    checked_at BIGINT NOT NULL,
    PRIMARY KEY (account_id, domain_id, purpose)
);

-- How many recipients a young domain has sent to on its last day, and how far it has come: `step` is the place of that
-- day's cap in the schedule. By its name: whoever removes it and adds it again goes on where it was.
CREATE TABLE warmups (
    account_id TEXT COLLATE "C" NOT NULL,
    domain TEXT COLLATE "C" NOT NULL,
    day BIGINT NOT NULL,
    step BIGINT NOT NULL,
    used BIGINT NOT NULL,
    PRIMARY KEY (account_id, domain)
);

-- Templates and layouts as they are sent: the content of the published version. `uses` has the aliases of the layout and
-- the parts, each between blanks.
CREATE TABLE templates (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    account_id TEXT COLLATE "C" NOT NULL,
    alias TEXT COLLATE "C" NOT NULL,
    version BIGINT,
    layout TEXT COLLATE "C",
    uses TEXT COLLATE "C",
    subject TEXT COLLATE "C" NOT NULL,
    text TEXT COLLATE "C",
    html TEXT COLLATE "C",
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    UNIQUE (account_id, alias)
);

CREATE TABLE template_versions (
    template_id TEXT COLLATE "C" NOT NULL,
    number BIGINT NOT NULL,
    account_id TEXT COLLATE "C" NOT NULL,
    saved_at BIGINT NOT NULL,
    saved_by TEXT COLLATE "C" NOT NULL,
    published_at BIGINT,
    layout TEXT COLLATE "C",
    subject TEXT COLLATE "C" NOT NULL,
    text TEXT COLLATE "C",
    html TEXT COLLATE "C",
    sample TEXT COLLATE "C",
    PRIMARY KEY (template_id, number)
);
CREATE INDEX template_versions_by_account ON template_versions (account_id);


-- MAIL
-- Partitioned by the time at which it was accepted, with which its id begins, so that retention can drop a partition
-- instead of deleting its rows: see PARTITIONS at the end.

-- `response` is the body of the 202 as it was sent: a replay answers with these very bytes. `metadata` is a JSON object of
-- strings. `is_test`: it only goes to the simulator. `return_path_domain` is the domain of the envelope senders, chosen
-- when the message is accepted; empty: that of its sender. `ended_at` is when the last recipient became final.
CREATE TABLE messages (
    account_id TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    credential_id TEXT COLLATE "C" NOT NULL,
    source TEXT COLLATE "C" NOT NULL CHECK (source IN ('api', 'smtp', 'test')),
    sender TEXT COLLATE "C" NOT NULL,
    sender_key TEXT COLLATE "C" NOT NULL,
    subject TEXT COLLATE "C" NOT NULL,
    status TEXT COLLATE "C" NOT NULL CHECK (status IN ('queued', 'delivered', 'partial', 'failed')),
    billing_status TEXT COLLATE "C" NOT NULL
        CHECK (billing_status IN ('reserved', 'settled', 'released')),
    recipient_count BIGINT NOT NULL,
    credits_reserved BIGINT NOT NULL,
    size BIGINT NOT NULL,
    request_id TEXT COLLATE "C" NOT NULL,
    response BYTEA NOT NULL,
    created_at BIGINT NOT NULL,
    ended_at BIGINT,
    has_body BIGINT NOT NULL DEFAULT 1 CHECK (has_body IN (0, 1)),
    return_path_domain TEXT COLLATE "C" NOT NULL DEFAULT '',
    metadata TEXT COLLATE "C",
    send_at BIGINT,
    expires_at BIGINT,
    is_test BIGINT NOT NULL DEFAULT 0 CHECK (is_test IN (0, 1)),
    PRIMARY KEY (account_id, id)
) PARTITION BY RANGE (id);
CREATE TABLE messages_first PARTITION OF messages FOR VALUES FROM (MINVALUE) TO (MAXVALUE);
-- A message is found by how it ended, and by its sender. One that has not ended is found by the queue; delivered ones,
-- nearly all, by their time.
-- Here and with recipients, the index for an address begins with it. One that begins with the account would also serve a
-- query for a message of an account, by walking through all that the account has; in a new database PostgreSQL takes that
-- for as good as the primary key, and keeps the plan for as long as it has not counted the rows.
CREATE INDEX messages_undelivered ON messages (account_id, status, id)
    WHERE status <> 'queued' AND status <> 'delivered';
CREATE INDEX messages_by_sender ON messages (sender_key, account_id, id);
-- Retention: bodies go before the rest does. A message is in one of the two at a time.
CREATE INDEX messages_with_body ON messages (ended_at) WHERE ended_at IS NOT NULL AND has_body = 1;
CREATE INDEX messages_without_body ON messages (ended_at) WHERE ended_at IS NOT NULL AND has_body = 0;
-- Test messages, which may be few among many; the space that they take, and those that have expired.
CREATE INDEX messages_test ON messages (account_id, id) WHERE is_test = 1;
CREATE INDEX messages_test_ended ON messages (ended_at, account_id, size, recipient_count) WHERE is_test = 1;

-- Kept apart from the rows that change. Values up to a page stay beside their row and none is compressed: mail of a few
-- kilobytes then costs one write instead of four.
CREATE TABLE bodies (
    account_id TEXT COLLATE "C" NOT NULL,
    message_id TEXT COLLATE "C" NOT NULL,
    mime BYTEA NOT NULL,
    PRIMARY KEY (message_id, account_id)
) PARTITION BY RANGE (message_id);
ALTER TABLE bodies ALTER COLUMN mime SET STORAGE EXTERNAL;
CREATE TABLE bodies_first PARTITION OF bodies FOR VALUES FROM (MINVALUE) TO (MAXVALUE) WITH (toast_tuple_target = 8160);

CREATE TABLE recipients (
    account_id TEXT COLLATE "C" NOT NULL,
    message_id TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    email TEXT COLLATE "C" NOT NULL,
    email_key TEXT COLLATE "C" NOT NULL,
    domain TEXT COLLATE "C" NOT NULL,
    status TEXT COLLATE "C" NOT NULL CHECK (status IN ('queued', 'deferred', 'delivered', 'bounced', 'failed', 'canceled', 'expired')),
    billing_status TEXT COLLATE "C" NOT NULL
        CHECK (billing_status IN ('reserved', 'settled', 'released')),
    attempt_count BIGINT NOT NULL,
    last_smtp_code BIGINT,
    last_smtp_response TEXT COLLATE "C",
    delivered_at BIGINT,
    bounced_at BIGINT,
    PRIMARY KEY (message_id, account_id, id)
) PARTITION BY RANGE (message_id);
CREATE TABLE recipients_first PARTITION OF recipients FOR VALUES FROM (MINVALUE) TO (MAXVALUE);
CREATE INDEX recipients_by_email ON recipients (email_key, account_id, message_id);
-- Searches by outcome, cause and reply. Recipients that are queued or delivered are not in it, so accepting and delivering
-- mail does not write it.
CREATE INDEX recipients_undelivered ON recipients (account_id, status, message_id)
    WHERE status <> 'queued' AND status <> 'delivered';

CREATE TABLE message_tags (
    account_id TEXT COLLATE "C" NOT NULL,
    tag TEXT COLLATE "C" NOT NULL,
    message_id TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (account_id, tag, message_id)
) PARTITION BY RANGE (message_id);
CREATE TABLE message_tags_first PARTITION OF message_tags FOR VALUES FROM (MINVALUE) TO (MAXVALUE);
-- The tags of a message that goes are found by it.
CREATE INDEX message_tags_of_message ON message_tags (account_id, message_id);

-- Messages by their metadata: an entry is a key and its value, `order:1042`. A key contains no colon.
CREATE TABLE message_metadata (
    account_id TEXT COLLATE "C" NOT NULL,
    entry TEXT COLLATE "C" NOT NULL,
    message_id TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (account_id, entry, message_id)
) PARTITION BY RANGE (message_id);
CREATE TABLE message_metadata_first PARTITION OF message_metadata FOR VALUES FROM (MINVALUE) TO (MAXVALUE);
CREATE INDEX message_metadata_of_message ON message_metadata (account_id, message_id);

-- Which messages were sent again, and as which. A message that is one names the other in its receipt.
CREATE TABLE resends (
    account_id TEXT COLLATE "C" NOT NULL,
    resend_of TEXT COLLATE "C" NOT NULL,
    message_id TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (account_id, resend_of, message_id)
) PARTITION BY RANGE (resend_of);
CREATE TABLE resends_first PARTITION OF resends FOR VALUES FROM (MINVALUE) TO (MAXVALUE);

-- The key of a batch has the response to all of its messages.
CREATE TABLE idempotency_keys (
    credential_id TEXT COLLATE "C" NOT NULL,
    key TEXT COLLATE "C" NOT NULL,
    account_id TEXT COLLATE "C" NOT NULL,
    body_hash BYTEA NOT NULL,
    message_id TEXT COLLATE "C" NOT NULL,
    expires_at BIGINT NOT NULL,
    response BYTEA,
    PRIMARY KEY (credential_id, key)
);
-- Rows come in the order of their expiry, so the smallest kind of index finds the oldest.
CREATE INDEX idempotency_keys_by_expiry ON idempotency_keys USING brin (expires_at);

-- Every attempt, with the destination's words. `verdict` is what followed from it, `fault` whose it was, `reason` the name
-- of the rule that said so. `tls` is empty for a connection in plain text, `source` is the name of the source address, and
-- empty where the system chose it.
CREATE TABLE attempts (
    account_id TEXT COLLATE "C" NOT NULL,
    message_id TEXT COLLATE "C" NOT NULL,
    recipient_id TEXT COLLATE "C" NOT NULL,
    started_at BIGINT NOT NULL,
    duration BIGINT NOT NULL,
    provider_queue TEXT COLLATE "C" NOT NULL,
    host TEXT COLLATE "C" NOT NULL,
    address TEXT COLLATE "C" NOT NULL,
    source TEXT COLLATE "C" NOT NULL DEFAULT '',
    tls TEXT COLLATE "C" NOT NULL,
    stage TEXT COLLATE "C" NOT NULL,
    verdict TEXT COLLATE "C" NOT NULL CHECK (verdict IN ('delivered', 'bounced', 'failed', 'retry')),
    fault TEXT COLLATE "C",
    reason TEXT COLLATE "C" NOT NULL,
    smtp_code BIGINT,
    enhanced_code TEXT COLLATE "C" NOT NULL,
    response TEXT COLLATE "C" NOT NULL,
    in_doubt BIGINT NOT NULL CHECK (in_doubt IN (0, 1)),
    PRIMARY KEY (message_id, account_id, recipient_id, started_at)
) PARTITION BY RANGE (message_id);
CREATE TABLE attempts_first PARTITION OF attempts FOR VALUES FROM (MINVALUE) TO (MAXVALUE);
-- The latest refusals of an account.
CREATE INDEX attempts_refused ON attempts (account_id, started_at) WHERE verdict IN ('bounced', 'failed');

-- What was said between us and a receiving server in attempts that did not succeed: commands and replies, at most 4 KiB.
CREATE TABLE attempt_conversations (
    account_id TEXT COLLATE "C" NOT NULL,
    message_id TEXT COLLATE "C" NOT NULL,
    recipient_id TEXT COLLATE "C" NOT NULL,
    started_at BIGINT NOT NULL,
    conversation TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (account_id, message_id, started_at, recipient_id)
) PARTITION BY RANGE (message_id);
CREATE TABLE attempt_conversations_first PARTITION OF attempt_conversations FOR VALUES FROM (MINVALUE) TO (MAXVALUE);

-- Reports that came back after a recipient was final (RFC 3464); the final state never changes.
CREATE TABLE async_bounces (
    account_id TEXT COLLATE "C" NOT NULL,
    message_id TEXT COLLATE "C" NOT NULL,
    recipient_id TEXT COLLATE "C" NOT NULL,
    received_at BIGINT NOT NULL,
    action TEXT COLLATE "C" NOT NULL,
    status TEXT COLLATE "C" NOT NULL,
    fault TEXT COLLATE "C" NOT NULL,
    response TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (account_id, message_id, recipient_id, received_at)
) PARTITION BY RANGE (message_id);
CREATE TABLE async_bounces_first PARTITION OF async_bounces FOR VALUES FROM (MINVALUE) TO (MAXVALUE);

-- Addresses that mail must not go to: a recipient on the list is accepted and ends bounced without an attempt.
CREATE TABLE suppressions (
    account_id TEXT COLLATE "C" NOT NULL,
    email_key TEXT COLLATE "C" NOT NULL,
    source TEXT COLLATE "C" NOT NULL CHECK (source IN ('bounce', 'late_bounce', 'complaint', 'operator', 'account', 'import')),
    reason TEXT COLLATE "C" NOT NULL,
    smtp_code BIGINT,
    message_id TEXT COLLATE "C",
    created_at BIGINT NOT NULL,
    PRIMARY KEY (account_id, email_key)
);

-- What was accepted and what became of it, by hour. `provider` is the mailbox provider that gave the result; what was
-- accepted has none. `delivery_time` is the time from queue to delivery, summed over the delivered, `message_bytes` the
-- sum of the sizes of the accepted messages. Written with the mail itself, under the account's lock.
CREATE TABLE hourly_counts (
    account_id TEXT COLLATE "C" NOT NULL,
    hour BIGINT NOT NULL,
    provider TEXT COLLATE "C" NOT NULL,
    messages BIGINT NOT NULL,
    recipients BIGINT NOT NULL,
    delivered BIGINT NOT NULL,
    bounced BIGINT NOT NULL,
    failed BIGINT NOT NULL,
    deferred BIGINT NOT NULL,
    delivery_time BIGINT NOT NULL DEFAULT 0,
    message_bytes BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (account_id, hour, provider)
);
CREATE INDEX hourly_counts_over ON hourly_counts (hour);

-- Recipients that bounced or failed, by the hour of acceptance, mailbox provider and reason: `hourly_counts` in more
-- detail. Written with the result, and only for those.
CREATE TABLE failure_counts (
    account_id TEXT COLLATE "C" NOT NULL,
    hour BIGINT NOT NULL,
    provider TEXT COLLATE "C" NOT NULL,
    reason TEXT COLLATE "C" NOT NULL,
    bounced BIGINT NOT NULL,
    failed BIGINT NOT NULL,
    PRIMARY KEY (account_id, hour, provider, reason)
);
CREATE INDEX failure_counts_by_hour ON failure_counts (hour);

-- What the bounce guard counts, by day: recipients that became final after an attempt, those whose address does not exist,
-- and complaints.
CREATE TABLE bounce_guard_days (
    account_id TEXT COLLATE "C" NOT NULL,
    day BIGINT NOT NULL,
    recipients BIGINT NOT NULL,
    bounces BIGINT NOT NULL,
    complaints BIGINT NOT NULL,
    PRIMARY KEY (account_id, day)
);
CREATE INDEX bounce_guard_days_over ON bounce_guard_days (day);

-- Reports that counted for the bounce guard, and on which day. A report has two keys, and each counts once: its mailbox, an
-- address without what its owner can vary, and its signature, as "dkim:" and a hash.
CREATE TABLE bounce_guard_reports (
    account_id TEXT COLLATE "C" NOT NULL,
    report_key TEXT COLLATE "C" NOT NULL,
    day BIGINT NOT NULL,
    PRIMARY KEY (account_id, report_key)
);
CREATE INDEX bounce_guard_reports_over ON bounce_guard_reports (day);


-- QUEUE

-- One row for each recipient that is not final; the row goes with the final result. `queue_key` is the recipient's domain,
-- a blank, and the account: work is taken key by key, so that neither a destination nor an account can hold up another.
-- Recipients with little time have their key a second time, as `urgent_key`: ready ones are found by it before all others.
-- `ready` rows can be claimed. The others wait until `due_at`: for their next attempt, or for the end of a lease, which
-- `worker` holds then. A worker that is gone leaves its name behind, and `lost_leases` counts that.
CREATE TABLE queue (
    account_id TEXT COLLATE "C" NOT NULL,
    message_id TEXT COLLATE "C" NOT NULL,
    recipient_id TEXT COLLATE "C" NOT NULL,
    queue_key TEXT COLLATE "C" NOT NULL,
    urgent_key TEXT COLLATE "C",
    email TEXT COLLATE "C" NOT NULL,
    email_key TEXT COLLATE "C" NOT NULL,
    size BIGINT NOT NULL,
    attempt_count BIGINT NOT NULL,
    lost_leases BIGINT NOT NULL,
    ready BIGINT NOT NULL CHECK (ready IN (0, 1)),
    queued_at BIGINT NOT NULL,
    due_at BIGINT NOT NULL,
    expires_at BIGINT,
    worker TEXT COLLATE "C",
    PRIMARY KEY (account_id, message_id, recipient_id)
);
-- Recipient ids sort by time: within a key the oldest comes first. The indexes of urgent and of expiring mail are empty for
-- other mail.
CREATE INDEX queue_ready ON queue (queue_key, recipient_id) WHERE ready = 1;
CREATE INDEX queue_urgent ON queue (urgent_key, recipient_id) WHERE ready = 1 AND urgent_key IS NOT NULL;
CREATE INDEX queue_waiting ON queue (due_at) WHERE ready = 0;
CREATE INDEX queue_expiring ON queue (expires_at) WHERE expires_at IS NOT NULL;

-- What the operator holds back: '' in `account_id` or `domain` stands for all. A hold in force has no `released_at`; a
-- released one is kept for a while, because what it held must not expire at once. Recipients queued before
-- `in_doubt_before` may have been delivered already: the queue was restored from a backup.
CREATE TABLE holds (
    account_id TEXT COLLATE "C" NOT NULL,
    domain TEXT COLLATE "C" NOT NULL,
    reason TEXT COLLATE "C" NOT NULL,
    held_at BIGINT NOT NULL,
    released_at BIGINT,
    in_doubt_before BIGINT,
    PRIMARY KEY (account_id, domain)
);

-- What workers know of the provider queues that are not simply open, so that an operator can see why mail waits.
CREATE TABLE provider_queues (
    worker TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    state TEXT COLLATE "C" NOT NULL CHECK (state IN ('slowed', 'paused', 'blocked')),
    reason TEXT COLLATE "C" NOT NULL,
    until BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (worker, name)
);

-- Changes that operators make to provider queues at run time, on all hosts: by the name of a provider queue, or `others`.
-- A limit that is NULL is that of the settings. A pause and changed limits have a reason and an end each.
CREATE TABLE provider_overrides (
    name TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    paused BIGINT NOT NULL CHECK (paused IN (0, 1)),
    pause_reason TEXT COLLATE "C" NOT NULL DEFAULT '',
    pause_until BIGINT,
    connections BIGINT,
    messages_per_second BIGINT,
    messages_per_connection BIGINT,
    limits_reason TEXT COLLATE "C" NOT NULL DEFAULT '',
    limits_until BIGINT,
    until BIGINT,
    set_by TEXT COLLATE "C" NOT NULL,
    set_at BIGINT NOT NULL
);

-- What holds for source addresses at run time, on all hosts: paused, draining or warming. A pause may be for one provider;
-- otherwise `provider` is empty.
CREATE TABLE source_states (
    source TEXT COLLATE "C" NOT NULL,
    provider TEXT COLLATE "C" NOT NULL,
    state TEXT COLLATE "C" NOT NULL CHECK (state IN ('paused', 'draining', 'warming')),
    reason TEXT COLLATE "C" NOT NULL,
    set_by TEXT COLLATE "C" NOT NULL,
    set_at BIGINT NOT NULL,
    until BIGINT,
    PRIMARY KEY (source, provider, state)
);

-- Attempts by source address, mailbox provider and day, and how they ended.
CREATE TABLE source_counts (
    source TEXT COLLATE "C" NOT NULL,
    provider TEXT COLLATE "C" NOT NULL,
    day BIGINT NOT NULL,
    delivered BIGINT NOT NULL,
    deferred BIGINT NOT NULL,
    refused BIGINT NOT NULL,
    blocked BIGINT NOT NULL,
    PRIMARY KEY (source, provider, day)
);
CREATE INDEX source_counts_over ON source_counts (day);

-- MTA-STS policies of destinations (RFC 8461), so that a restart or another host does not forget that a domain requires
-- TLS. `policy` is the text of the policy.
CREATE TABLE mta_sts_policies (
    domain TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    policy_id TEXT COLLATE "C" NOT NULL,
    policy TEXT COLLATE "C" NOT NULL,
    fetched_at BIGINT NOT NULL,
    valid_until BIGINT NOT NULL
);
CREATE INDEX mta_sts_policies_over ON mta_sts_policies (valid_until);
CREATE INDEX mta_sts_policies_by_age ON mta_sts_policies (fetched_at);

-- The reports about TLS that recipient domains may ask for (RFC 8460), by day. `sent` are the URIs that have got it, one on
-- each line. A report is claimed by moving `due_at` ahead.
CREATE TABLE tls_reports (
    day BIGINT NOT NULL,
    domain TEXT COLLATE "C" NOT NULL,
    due_at BIGINT NOT NULL,
    attempt_count BIGINT NOT NULL,
    sent TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (day, domain)
);
CREATE INDEX tls_reports_due ON tls_reports (due_at);

-- What is reported: how many sessions had which result. `result` is JSON, and `fingerprint` its hash.
CREATE TABLE tls_results (
    day BIGINT NOT NULL,
    domain TEXT COLLATE "C" NOT NULL,
    fingerprint TEXT COLLATE "C" NOT NULL,
    result TEXT COLLATE "C" NOT NULL,
    sessions BIGINT NOT NULL,
    PRIMARY KEY (day, domain, fingerprint)
);


-- WEBHOOKS

-- Webhook endpoints. One of an account is the first, which is the contract's `/v1/webhook`. One that was removed keeps its
-- row until its log is swept, and is seen by nobody: what a new endpoint does cannot touch what an old one has left.
-- `version` is which data an event has. An endpoint gets events about messages with one of these tags and one of these
-- sender domains (a line for each; empty: all), of live or of test mode. `standard_signature`: requests are also signed as
-- Standard Webhooks are. `failing_since`: since when every attempt has failed. `disabled_reason`: why the service disabled
-- it. In the format of another service, which the first never has, `format_events` are the events in its words, and
-- `request_headers` what its requests have besides, encrypted.
CREATE TABLE webhooks (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    account_id TEXT COLLATE "C" NOT NULL,
    url TEXT COLLATE "C" NOT NULL,
    events TEXT COLLATE "C" NOT NULL,
    enabled BIGINT NOT NULL CHECK (enabled IN (0, 1)),
    secret_hint TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    is_first BIGINT NOT NULL CHECK (is_first IN (0, 1)),
    version BIGINT NOT NULL CHECK (version IN (1, 2)),
    tags TEXT COLLATE "C" NOT NULL,
    sender_domains TEXT COLLATE "C" NOT NULL,
    mode TEXT COLLATE "C" NOT NULL CHECK (mode IN ('live', 'test')),
    standard_signature BIGINT NOT NULL CHECK (standard_signature IN (0, 1)),
    description TEXT COLLATE "C" NOT NULL,
    failing_since BIGINT,
    disabled_reason TEXT COLLATE "C" NOT NULL,
    format TEXT COLLATE "C" NOT NULL CHECK (format <> ''),
    format_events TEXT COLLATE "C" NOT NULL,
    request_headers BYTEA,
    pinged_at BIGINT,
    removed_at BIGINT
);
CREATE INDEX webhooks_by_account ON webhooks (account_id, id);
CREATE UNIQUE INDEX webhooks_first ON webhooks (account_id) WHERE is_first = 1 AND removed_at IS NULL;
CREATE INDEX webhooks_removed ON webhooks (removed_at) WHERE removed_at IS NOT NULL;

-- Signing secrets, encrypted. The newest has no end; earlier ones sign beside it until theirs.
CREATE TABLE webhook_secrets (
    account_id TEXT COLLATE "C" NOT NULL,
    webhook_id TEXT COLLATE "C" NOT NULL,
    version BIGINT NOT NULL,
    secret BYTEA NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT,
    PRIMARY KEY (account_id, webhook_id, version)
);
CREATE INDEX webhook_secrets_over ON webhook_secrets (expires_at) WHERE expires_at IS NOT NULL;

-- What was sent, or is to be. `body` is the request's bytes, made once. `ready` rows can be claimed. `waiting` rows wait
-- until `due_at`: for their next attempt, or for the end of a lease, which `worker` holds then. An attempt is counted when
-- it is claimed, so that a worker's death cannot make one too many. `url` is where the last attempt went.
CREATE TABLE webhook_deliveries (
    account_id TEXT COLLATE "C" NOT NULL,
    webhook_id TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    event_id TEXT COLLATE "C" NOT NULL,
    event_type TEXT COLLATE "C" NOT NULL,
    message_id TEXT COLLATE "C",
    recipient_id TEXT COLLATE "C",
    replay_of TEXT COLLATE "C",
    url TEXT COLLATE "C" NOT NULL,
    body BYTEA NOT NULL,
    state TEXT COLLATE "C" NOT NULL CHECK (state IN ('ready', 'waiting', 'succeeded', 'failed')),
    attempt_count BIGINT NOT NULL,
    due_at BIGINT NOT NULL,
    worker TEXT COLLATE "C",
    created_at BIGINT NOT NULL,
    ended_at BIGINT,
    PRIMARY KEY (account_id, webhook_id, id)
);
-- With `due_at`, so that counting what is ready, and for how long, reads no bodies.
CREATE INDEX webhook_deliveries_ready ON webhook_deliveries (webhook_id, id, due_at) WHERE state = 'ready';
CREATE INDEX webhook_deliveries_waiting ON webhook_deliveries (due_at) WHERE state = 'waiting';
-- What failed and may be sent again.
CREATE INDEX webhook_deliveries_failed ON webhook_deliveries (webhook_id, id) WHERE state = 'failed';
CREATE INDEX webhook_deliveries_ended ON webhook_deliveries (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX webhook_deliveries_of_message ON webhook_deliveries (message_id, id);

-- Every attempt, with the endpoint's answer, cut. `error` says why it failed when there is no status to say so.
CREATE TABLE webhook_attempts (
    account_id TEXT COLLATE "C" NOT NULL,
    webhook_id TEXT COLLATE "C" NOT NULL,
    delivery_id TEXT COLLATE "C" NOT NULL,
    number BIGINT NOT NULL,
    started_at BIGINT NOT NULL,
    duration BIGINT NOT NULL,
    status_code BIGINT,
    response_body TEXT COLLATE "C",
    error TEXT COLLATE "C",
    PRIMARY KEY (account_id, webhook_id, delivery_id, number)
);


-- OPERATIONS

-- One row once a process with the installation key has opened the database. The fingerprint is derived from the key and
-- says nothing about it.
CREATE TABLE installation_key (
    only_row BIGINT NOT NULL PRIMARY KEY CHECK (only_row = 1),
    fingerprint BYTEA NOT NULL
);

-- Keys that `postroad key rotate` replaced, encrypted with the current one: what they signed is accepted for a while.
CREATE TABLE previous_keys (
    fingerprint BYTEA NOT NULL PRIMARY KEY,
    installation_key BYTEA NOT NULL,
    replaced_at BIGINT NOT NULL
);

-- The processes that run the service, as they report themselves: which roles run, and on which hosts. `rates` is what a
-- process does in a second, a JSON object.
CREATE TABLE processes (
    name TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    host TEXT COLLATE "C" NOT NULL,
    process_id BIGINT NOT NULL,
    roles TEXT COLLATE "C" NOT NULL,
    version TEXT COLLATE "C" NOT NULL,
    rates TEXT COLLATE "C" NOT NULL DEFAULT '',
    started_at BIGINT NOT NULL,
    seen_at BIGINT NOT NULL
);

-- The free space of a file system, as a host measures it every hour: how fast its disk fills.
CREATE TABLE disk_samples (
    host TEXT COLLATE "C" NOT NULL,
    folder TEXT COLLATE "C" NOT NULL,
    sampled_at BIGINT NOT NULL,
    free_bytes BIGINT NOT NULL,
    PRIMARY KEY (host, folder, sampled_at)
);

-- Long work that an operator has started. The process that runs it reports its progress; one that no longer does has
-- stopped.
CREATE TABLE operator_jobs (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    kind TEXT COLLATE "C" NOT NULL,
    subject TEXT COLLATE "C" NOT NULL,
    state TEXT COLLATE "C" NOT NULL,
    done BIGINT NOT NULL,
    total BIGINT,
    result TEXT COLLATE "C" NOT NULL,
    created_by TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    finished_at BIGINT
);

-- What people are told by mail. `account_id` is empty for a notice about the installation, `user_id` unless it is for one
-- person. `resolved_at` is when it was found out who gets it.
CREATE TABLE notices (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    kind TEXT COLLATE "C" NOT NULL,
    account_id TEXT COLLATE "C" NOT NULL,
    user_id TEXT COLLATE "C" NOT NULL,
    subject TEXT COLLATE "C" NOT NULL,
    content TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    resolved_at BIGINT
);
CREATE INDEX notices_by_subject ON notices (kind, subject, created_at);
CREATE INDEX notices_by_account ON notices (account_id, kind, created_at);
CREATE INDEX notices_by_time ON notices (created_at);
CREATE INDEX notices_unresolved ON notices (id) WHERE resolved_at IS NULL;

-- Who gets a notice: a person, or the webhook of the installation, which has an empty `user_id`.
CREATE TABLE notice_mails (
    user_id TEXT COLLATE "C" NOT NULL,
    notice_id TEXT COLLATE "C" NOT NULL,
    is_digest BIGINT NOT NULL,
    due_at BIGINT NOT NULL,
    sent_at BIGINT,
    PRIMARY KEY (user_id, notice_id)
);
CREATE INDEX notice_mails_unsent ON notice_mails (due_at) WHERE sent_at IS NULL;
CREATE INDEX notice_mails_sent ON notice_mails (user_id, sent_at);
CREATE INDEX notice_mails_by_time ON notice_mails (due_at);

-- How a person wants the notices of a kind, where it is not the default of that kind.
CREATE TABLE notice_choices (
    user_id TEXT COLLATE "C" NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    choice TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (user_id, kind)
);

-- Certificates that the service obtains by itself (ACME, RFC 8555), shared by all hosts. One host orders at a time: it
-- claims the row until a time. Until the first certificate is there, its chain and its key are empty. Private keys are
-- encrypted.
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


-- PARTITIONS

-- The newest partition is open at its end, so that no message is ever refused for want of a partition. No partition is
-- ever renamed, because a `pg_dump` that has just begun would take one for another.
-- `services/operations/partitions.py` decides when the functions below are called.

-- Get tables for ourselves, all or none, and be the only one that changes partitions. Transactions use the tables in any
-- order, so each attempt is short: one of those that wait for each other is us, and mail waits this long for a lock at most.
-- Partitions that are not named stay free, for example for autovacuum.
CREATE FUNCTION lock_mail_tables(names TEXT[]) RETURNS VOID LANGUAGE plpgsql SET lock_timeout = '50ms' AS $$
DECLARE
    name TEXT;
BEGIN
    FOR attempt IN 1..20 LOOP
        BEGIN
            PERFORM pg_advisory_xact_lock(hashtext('postroad partitions'));
            FOREACH name IN ARRAY names LOOP
                EXECUTE format('LOCK TABLE ONLY %I IN ACCESS EXCLUSIVE MODE', name);
            END LOOP;
            RETURN;
        EXCEPTION WHEN lock_not_available THEN
            IF attempt = 20 THEN
                RAISE;
            END IF;
            PERFORM pg_sleep(0.2 * random());
        END;
    END LOOP;
END $$;

-- The column by which a table is partitioned.
CREATE FUNCTION mail_partition_column(name TEXT) RETURNS TEXT LANGUAGE sql STABLE AS $$
    SELECT attname FROM pg_partitioned_table JOIN pg_attribute ON attrelid = partrelid AND attnum = partattrs[0]
    WHERE partrelid = format('%I', name)::REGCLASS;
$$;

-- The partitions of a table, from which id they begin and before which they end, and with which options they were created.
-- An open beginning or end is NULL.
CREATE FUNCTION mail_partitions(name TEXT)
RETURNS TABLE (partition TEXT, beginning TEXT, ending TEXT, options TEXT) LANGUAGE sql STABLE AS $$
    SELECT relname::TEXT, substring(bounds FROM 'FROM \(''(.*)''\) TO'), substring(bounds FROM 'TO \(''(.*)''\)'),
        CASE WHEN reloptions IS NULL THEN '' ELSE format('WITH (%s)', array_to_string(reloptions, ', ')) END
    FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid
    CROSS JOIN pg_get_expr(relpartbound, pg_class.oid) AS bounds
    WHERE inhparent = format('%I', name)::REGCLASS;
$$;

-- The day of an id, for the name of a partition.
CREATE FUNCTION mail_partition_day(bound TEXT) RETURNS TEXT LANGUAGE sql IMMUTABLE AS $$
    SELECT to_char(to_timestamp(('x00' || substr(bound, 4, 14))::BIT(64)::BIGINT / 1000000.0) AT TIME ZONE 'UTC',
        'YYYYMMDD');
$$;

-- Refuse rows at or after a bound in the newest partitions, so that they can be checked for them while mail goes on;
-- NULL ends this.
CREATE FUNCTION bound_mail_partitions(names TEXT[], bound TEXT) RETURNS VOID LANGUAGE plpgsql SECURITY DEFINER
AS $$
DECLARE
    name TEXT;
    newest RECORD;
    place TEXT;
BEGIN
    PERFORM lock_mail_tables(names);
    FOREACH name IN ARRAY names LOOP
        SELECT * INTO newest FROM mail_partitions(name) WHERE ending IS NULL;
        EXECUTE format('ALTER TABLE %I DROP CONSTRAINT IF EXISTS partition_bound', newest.partition);
        CONTINUE WHEN bound IS NULL;
        place := mail_partition_column(name);
        EXECUTE format('ALTER TABLE %I ADD CONSTRAINT partition_bound CHECK (%I >= %L AND %I < %L) NOT VALID',
            newest.partition, place, coalesce(newest.beginning, ''), place, bound);
    END LOOP;
END $$;

-- End the newest partitions at a bound, and begin new ones there. If mail is stored in them, they were bounded before,
-- and are read now, while mail goes on.
CREATE FUNCTION extend_mail_partitions(names TEXT[], bound TEXT) RETURNS VOID LANGUAGE plpgsql SECURITY DEFINER
AS $$
DECLARE
    name TEXT;
    newest RECORD;
    is_bounded BOOLEAN;
    has_rows BOOLEAN;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('postroad partitions'));
    FOREACH name IN ARRAY names LOOP
        SELECT * INTO newest FROM mail_partitions(name) WHERE ending IS NULL;
        -- Another host was faster.
        IF newest.beginning COLLATE "C" >= bound THEN
            RETURN;
        END IF;
        is_bounded := EXISTS (SELECT FROM pg_constraint
            WHERE conrelid = format('%I', newest.partition)::REGCLASS AND conname = 'partition_bound');
        EXECUTE format('SELECT EXISTS (SELECT FROM %I)', newest.partition) INTO has_rows;
        IF is_bounded THEN
            EXECUTE format('ALTER TABLE %I VALIDATE CONSTRAINT partition_bound', newest.partition);
        ELSIF has_rows THEN
            RAISE EXCEPTION 'partition % has rows and no bound', newest.partition USING ERRCODE = 'check_violation';
        END IF;
    END LOOP;
    PERFORM lock_mail_tables(names || ARRAY(
        SELECT partition FROM unnest(names) AS name_of_table CROSS JOIN mail_partitions(name_of_table) WHERE ending IS NULL));
    FOREACH name IN ARRAY names LOOP
        SELECT * INTO newest FROM mail_partitions(name) WHERE ending IS NULL;
        EXECUTE format('ALTER TABLE %I DETACH PARTITION %I', name, newest.partition);
        EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%s) TO (%L)', name, newest.partition,
            coalesce(quote_literal(newest.beginning), 'MINVALUE'), bound);
        EXECUTE format('ALTER TABLE %I DROP CONSTRAINT IF EXISTS partition_bound', newest.partition);
        EXECUTE format('CREATE TABLE %I PARTITION OF %I FOR VALUES FROM (%L) TO (MAXVALUE) %s',
            name || '_from_' || mail_partition_day(bound), name, bound, newest.options);
    END LOOP;
END $$;

-- The messages before a bound that have not ended, or ended after a time.
CREATE FUNCTION late_messages(bound TEXT, ended_after BIGINT) RETURNS TABLE (late_account TEXT, late_id TEXT)
LANGUAGE sql STABLE AS $$
    SELECT account_id, id FROM messages WHERE id < bound AND ended_at > ended_after AND has_body = 1
    UNION SELECT account_id, id FROM messages WHERE id < bound AND ended_at > ended_after AND has_body = 0
    UNION SELECT account_id, message_id FROM queue WHERE message_id < bound;
$$;

-- Drop the partitions before a bound. Messages in them that have not ended, or ended after a time, are kept in a
-- partition for late mail, which is made anew each time.
CREATE FUNCTION expire_mail_partitions(names TEXT[], bound TEXT, ended_after BIGINT) RETURNS VOID
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    name TEXT;
    late TEXT;
    place TEXT;
    part RECORD;
    accounts TEXT[];
    ids TEXT[];
BEGIN
    FOREACH name IN ARRAY names LOOP
        EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING ALL) %s', name || '_late_' || mail_partition_day(bound), name,
            (SELECT options FROM mail_partitions(name) WHERE ending IS NULL));
    END LOOP;
    PERFORM lock_mail_tables(names || ARRAY['messages'] || ARRAY(
        SELECT partition FROM unnest(names) AS name_of_table CROSS JOIN mail_partitions(name_of_table) WHERE ending COLLATE "C" <= bound));
    -- Only now nothing changes: a host whose clock is wrong may have accepted mail that seems to be as old.
    SELECT array_agg(late_account), array_agg(late_id) INTO accounts, ids FROM late_messages(bound, ended_after);
    FOREACH name IN ARRAY names LOOP
        late := name || '_late_' || mail_partition_day(bound);
        place := mail_partition_column(name);
        EXECUTE format('INSERT INTO %I SELECT mail.* FROM %I AS mail JOIN unnest($1, $2) AS late (account_id, id)'
            ' ON mail.account_id = late.account_id AND mail.%I = late.id WHERE mail.%I < $3',
            late, name, place, place) USING accounts, ids, bound;
        FOR part IN SELECT partition FROM mail_partitions(name) WHERE ending COLLATE "C" <= bound LOOP
            EXECUTE format('ALTER TABLE %I DETACH PARTITION %I', name, part.partition);
            EXECUTE format('DROP TABLE %I', part.partition);
        END LOOP;
        EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (MINVALUE) TO (%L)', name, late, bound);
    END LOOP;
END $$;

-- They run as the owner of the tables, for every role that may delete mail, and find nothing but these tables by a name.
DO $$
DECLARE
    part RECORD;
BEGIN
    FOR part IN SELECT oid::REGPROCEDURE AS signature FROM pg_proc WHERE pronamespace = current_schema()::REGNAMESPACE
        AND proname IN ('lock_mail_tables', 'mail_partition_column', 'mail_partitions', 'mail_partition_day',
            'bound_mail_partitions', 'extend_mail_partitions', 'late_messages', 'expire_mail_partitions') LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = %I, pg_temp', part.signature, current_schema());
        EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', part.signature);
        EXECUTE (SELECT coalesce(string_agg(format('GRANT EXECUTE ON FUNCTION %s TO %s', part.signature, grantee::REGROLE),
            ';'), '') FROM pg_class CROSS JOIN aclexplode(relacl)
            WHERE pg_class.oid = 'messages'::REGCLASS AND privilege_type = 'DELETE' AND grantee NOT IN (0, relowner));
    END LOOP;
END $$;
