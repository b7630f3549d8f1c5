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
-- Tables are WITHOUT ROWID, except those with rows of a kilobyte and more, which SQLite stores badly that way.


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
    id TEXT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    name_key TEXT,
    status TEXT NOT NULL CHECK (status IN ('active', 'suspended')),
    suspended_reason TEXT,
    suspended_by TEXT CHECK (suspended_by IN ('operator', 'bounce_guard')),
    suspended_at INTEGER,
    closed_at INTEGER,
    removed_at INTEGER,
    available INTEGER NOT NULL CHECK (available >= 0),
    reserved INTEGER NOT NULL CHECK (reserved >= 0),
    unlimited INTEGER NOT NULL DEFAULT 0 CHECK (unlimited IN (0, 1)),
    has_uncharged INTEGER NOT NULL DEFAULT 0 CHECK (has_uncharged IN (0, 1)),
    subscribed_events TEXT NOT NULL DEFAULT '',
    request_rate INTEGER,
    recipients_per_day INTEGER,
    second_factor_since INTEGER,
    rate_full_at INTEGER NOT NULL DEFAULT 0,
    rate_seen_at INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX accounts_by_name ON accounts (name_key);
CREATE INDEX accounts_suspended ON accounts (suspended_at) WHERE suspended_by = 'bounce_guard';
CREATE INDEX accounts_removed ON accounts (removed_at) WHERE removed_at IS NOT NULL;

-- Every change of the two balances of an account.
-- Here and in other tables that every message writes to, rules are joined by OR: for each row, SQLite puts the values of
-- an IN with more than two into a table of their own, which is a third of the work of accepting a message.
CREATE TABLE ledger (
    account_id TEXT NOT NULL,
    id TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind = 'grant' OR kind = 'reserve' OR kind = 'settle' OR kind = 'release'),
    available INTEGER NOT NULL,
    reserved INTEGER NOT NULL,
    message_id TEXT,
    note TEXT,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (account_id, id)
) STRICT, WITHOUT ROWID;

-- What a person logs in with. Several logins may have the same email: nobody can occupy an address.
CREATE TABLE logins (
    id TEXT NOT NULL PRIMARY KEY,
    email TEXT NOT NULL,
    email_key TEXT NOT NULL,
    password_hash TEXT,
    tokens_valid_from INTEGER NOT NULL,
    created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX logins_by_email ON logins (email_key, id);

-- The members of accounts: one person may belong to several. `joined_at` is when the user first had a login; who was
-- invited and has not come yet has neither. `operator_since`: since when the user operates the installation.
-- `time_zone` is a name of the IANA database.
CREATE TABLE users (
    id TEXT NOT NULL PRIMARY KEY,
    account_id TEXT NOT NULL,
    login_id TEXT,
    email TEXT NOT NULL,
    email_key TEXT NOT NULL,
    role TEXT NOT NULL CHECK (role IN ('owner', 'admin', 'developer', 'analyst', 'member', 'read_only')),
    tokens_valid_from INTEGER NOT NULL,
    time_zone TEXT,
    operator_since INTEGER,
    disabled_at INTEGER,
    joined_at INTEGER,
    last_login_at INTEGER,
    created_at INTEGER NOT NULL,
    UNIQUE (account_id, email_key)
) STRICT, WITHOUT ROWID;
CREATE INDEX users_by_account ON users (account_id, id);
CREATE INDEX users_by_email ON users (email_key, id);
CREATE INDEX users_by_login ON users (login_id) WHERE login_id IS NOT NULL;

-- Browser sessions and API tokens; one without a row has ended. `methods` are how the person logged in, `confirmed_at` is
-- when they last proved who they are. What was made in a session ends with it: `parent_id`.
CREATE TABLE sessions (
    id TEXT NOT NULL PRIMARY KEY,
    login_id TEXT NOT NULL,
    user_id TEXT NOT NULL,
    account_id TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('browser', 'token')),
    name TEXT NOT NULL,
    device TEXT NOT NULL,
    network TEXT NOT NULL,
    methods TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    last_used_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    confirmed_at INTEGER NOT NULL,
    parent_id TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX sessions_by_login ON sessions (login_id, id);
CREATE INDEX sessions_by_user ON sessions (user_id, id);
CREATE INDEX sessions_by_account ON sessions (account_id);
CREATE INDEX sessions_by_parent ON sessions (parent_id) WHERE parent_id IS NOT NULL;
CREATE INDEX sessions_over ON sessions (expires_at);

-- Links by which a user chooses a password, once; a new one replaces the one before. One of an operator acts on the login
-- as a whole, one of an owner on the user of that account. `is_recovery`: it also removes the second factors.
CREATE TABLE password_links (
    token_hash BLOB NOT NULL PRIMARY KEY,
    account_id TEXT NOT NULL,
    user_id TEXT NOT NULL,
    by_operator INTEGER NOT NULL DEFAULT 0,
    is_recovery INTEGER NOT NULL DEFAULT 0,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX password_links_of_user ON password_links (user_id);
CREATE INDEX password_links_over ON password_links (expires_at);

-- Logins that wait for their second factor: the password was right, and `epoch` was its `tokens_valid_from`. `invitation`
-- is the hash of the password link with which the login then joins an account.
CREATE TABLE pending_logins (
    token_hash BLOB NOT NULL PRIMARY KEY,
    login_id TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    methods TEXT NOT NULL,
    invitation BLOB,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX pending_logins_over ON pending_logins (expires_at);

-- The authenticator app of a login (RFC 6238). `secret` is encrypted; before a first code was right, which sets
-- `confirmed_at`, it is no factor. `last_step` is the step of the last code that was accepted: no code works twice.
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

-- The passkeys of logins (Web Authentication). `rp_id` is the host that a passkey was made for, which the browser
-- compares; `user_handle` is random, and the same for all passkeys of a login. `sign_count` is 0 where the authenticator
-- does not count.
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

-- The OpenID Connect provider with which users of an account log in, chosen by its owners. The secret of the client is
-- encrypted. `group_roles` is a JSON object: a role by group, in the order in which they count.
CREATE TABLE sso_connections (
    account_id TEXT NOT NULL PRIMARY KEY,
    issuer TEXT NOT NULL,
    client_id TEXT NOT NULL,
    client_secret BLOB,
    scopes TEXT NOT NULL,
    role TEXT NOT NULL,
    groups_claim TEXT NOT NULL,
    group_roles TEXT NOT NULL,
    creates_users INTEGER NOT NULL,
    allows_passwords INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The email domains of such a connection. The account must also have verified the domain.
CREATE TABLE sso_domains (
    domain TEXT NOT NULL PRIMARY KEY,
    account_id TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX sso_domains_by_account ON sso_domains (account_id);

-- Who somebody is at a provider: the subject, which unlike an email never changes hands. It counts for one connection;
-- that of the installation has an empty account id.
CREATE TABLE sso_identities (
    account_id TEXT NOT NULL,
    issuer TEXT NOT NULL,
    subject TEXT NOT NULL,
    login_id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (account_id, issuer, subject)
) STRICT, WITHOUT ROWID;
CREATE INDEX sso_identities_by_login ON sso_identities (login_id);

-- Failed logins, counted for all processes and hosts. `counter` is a digest of a name, a network or both: nothing that a
-- stranger typed is stored. `clear_at` is when all of its failures are forgotten.
CREATE TABLE login_failures (
    counter BLOB NOT NULL PRIMARY KEY,
    clear_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX login_failures_over ON login_failures (clear_at);

-- The latest few networks from which a login or an SMTP credential was used.
CREATE TABLE known_networks (
    user_id TEXT NOT NULL,
    network TEXT NOT NULL,
    last_login_at INTEGER NOT NULL,
    PRIMARY KEY (user_id, network)
) STRICT, WITHOUT ROWID;
CREATE INDEX known_networks_over ON known_networks (last_login_at);

-- SMTP credentials. `creator_id` is NULL for those of the command line.
CREATE TABLE credentials (
    id TEXT NOT NULL PRIMARY KEY,
    account_id TEXT NOT NULL,
    name TEXT NOT NULL,
    username TEXT NOT NULL UNIQUE,
    password_hash TEXT NOT NULL,
    creator_id TEXT,
    created_at INTEGER NOT NULL,
    last_used_at INTEGER,
    revoked_at INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX credentials_by_account ON credentials (account_id, id);

-- API keys and their limits: domains, networks and templates are words, none mean no limit. A send to more recipients
-- than `approval_above` waits for the approval of a person. The key of an operator is none once its creator is not.
CREATE TABLE api_keys (
    id TEXT NOT NULL PRIMARY KEY,
    account_id TEXT NOT NULL,
    credential_id TEXT NOT NULL,
    name TEXT NOT NULL,
    key_hash BLOB NOT NULL UNIQUE,
    hint TEXT NOT NULL,
    scopes TEXT NOT NULL,
    domains TEXT NOT NULL DEFAULT '',
    networks TEXT NOT NULL DEFAULT '',
    templates TEXT NOT NULL DEFAULT '',
    recipients_per_day INTEGER,
    credit_budget INTEGER,
    approval_above INTEGER,
    created_by TEXT,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    last_used_at INTEGER,
    revoked_at INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX api_keys_by_account ON api_keys (account_id, id);
CREATE INDEX api_keys_by_expiry ON api_keys (expires_at) WHERE expires_at IS NOT NULL;

-- What keys with a limit have sent; written under the lock of the account. Not in `api_keys`, because the time of the last
-- use is written there without that lock.
CREATE TABLE api_key_usage (
    key_id TEXT NOT NULL PRIMARY KEY,
    account_id TEXT NOT NULL,
    day INTEGER NOT NULL,
    recipients INTEGER NOT NULL,
    credits INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX api_key_usage_by_account ON api_key_usage (account_id);

-- Sends of API keys that wait for the approval of a person.
CREATE TABLE approvals (
    id TEXT NOT NULL PRIMARY KEY,
    account_id TEXT NOT NULL,
    key_id TEXT NOT NULL,
    identity TEXT NOT NULL,
    idempotency_key TEXT NOT NULL,
    body_hash BLOB NOT NULL,
    is_batch INTEGER NOT NULL,
    is_test INTEGER NOT NULL,
    recipients INTEGER NOT NULL,
    request_id TEXT NOT NULL,
    state TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    -- Last, so that SQLite reads the others without it.
    body BLOB NOT NULL,
    UNIQUE (identity, idempotency_key)
) STRICT, WITHOUT ROWID;
CREATE INDEX approvals_by_account ON approvals (account_id, id);
CREATE INDEX approvals_by_time ON approvals (created_at);
CREATE INDEX approvals_by_state ON approvals (account_id, state, created_at, key_id);

-- Buckets of the other rates of an account, by name. Few rows that change often: no index but its key.
CREATE TABLE rates (
    name TEXT NOT NULL PRIMARY KEY,
    account_id TEXT NOT NULL,
    full_at INTEGER NOT NULL,
    seen_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Counts the changes to everything that decides who may do what, so that every process notices a revocation.
CREATE TABLE access_version (
    only_row INTEGER NOT NULL PRIMARY KEY CHECK (only_row = 1),
    version INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO access_version VALUES (1, 0);

-- Who did what in an account. `actor` is what a person was called then, because people go; what an operator or the service
-- itself has done has no person. `subject` is what it was done to, in words that people know.
CREATE TABLE audit_log (
    account_id TEXT NOT NULL,
    id TEXT NOT NULL,
    actor_kind TEXT NOT NULL CHECK (actor_kind IN ('person', 'api_key', 'operator', 'service')),
    user_id TEXT,
    actor TEXT NOT NULL,
    action TEXT NOT NULL,
    subject TEXT NOT NULL,
    detail TEXT NOT NULL,
    request_id TEXT NOT NULL,
    client_address TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (account_id, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX audit_log_over ON audit_log (created_at);

-- Refused and failed requests of an account, and changes by its keys, of the last days. `body` is what may be shown of the
-- body, and `skipped` counts those after this one that are not here because too many came at once.
CREATE TABLE request_log (
    account_id TEXT NOT NULL,
    id TEXT NOT NULL,
    caller_id TEXT NOT NULL,
    method TEXT NOT NULL,
    path TEXT NOT NULL,
    status INTEGER NOT NULL,
    code TEXT NOT NULL,
    error TEXT NOT NULL,
    client_address TEXT NOT NULL,
    body_size INTEGER NOT NULL,
    body BLOB NOT NULL,
    skipped INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (account_id, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX request_log_over ON request_log (created_at);

-- Searches that an account has given a name, for the page of messages.
CREATE TABLE saved_views (
    account_id TEXT NOT NULL,
    id TEXT NOT NULL,
    name TEXT NOT NULL,
    search TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (account_id, id),
    UNIQUE (account_id, name)
) STRICT, WITHOUT ROWID;


-- DOMAINS AND TEMPLATES

-- Sender domains. `verified_by` is whose word counts: `dns` is asked again and again, and `failing_since` is when it began
-- to say no. `check_at` is when it is asked next, `check_requested_at` when somebody last had it asked at once.
-- `warm`: the operator says that it needs no warm-up. `return_path_domain` is the subdomain for return paths whose MX
-- record the last check found; empty: envelope senders are at the domain.
CREATE TABLE domains (
    id TEXT NOT NULL PRIMARY KEY,
    account_id TEXT NOT NULL,
    name TEXT NOT NULL,
    verified_at INTEGER,
    verified_by TEXT CHECK (verified_by IN ('operator', 'dns')),
    failing_since INTEGER,
    check_at INTEGER NOT NULL DEFAULT 0,
    check_requested_at INTEGER NOT NULL DEFAULT 0,
    warm INTEGER NOT NULL DEFAULT 0 CHECK (warm IN (0, 1)),
    return_path_domain TEXT NOT NULL DEFAULT '',
    created_at INTEGER NOT NULL,
    UNIQUE (account_id, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX domains_by_account ON domains (account_id, id);
CREATE INDEX domains_to_check ON domains (check_at);
-- A name can be claimed by many accounts, but proven by one only.
CREATE UNIQUE INDEX domains_verified ON domains (name) WHERE verified_at IS NOT NULL;

-- Keys that sign for a domain (RFC 6376). A generation is an RSA key and an Ed25519 key (RFC 8463): `next` waits for its
-- record in DNS, `current` signs, and `old` has signed mail that may still be on its way. An Ed25519 key signs only while
-- its record is published. Private keys are encrypted; that of an old generation is emptied when the overlap ends.
CREATE TABLE dkim_keys (
    account_id TEXT NOT NULL,
    domain_id TEXT NOT NULL,
    selector TEXT NOT NULL,
    algorithm TEXT NOT NULL DEFAULT 'rsa' CHECK (algorithm IN ('rsa', 'ed25519')),
    status TEXT NOT NULL DEFAULT 'current' CHECK (status IN ('next', 'current', 'old')),
    private_key BLOB NOT NULL,
    public_key BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    published_at INTEGER,
    retired_at INTEGER,
    PRIMARY KEY (account_id, domain_id, selector)
) STRICT, WITHOUT ROWID;

-- What DNS last said of each record that a domain should have; `found` are the records of the same kind that stand there.
CREATE TABLE domain_checks (
    account_id TEXT NOT NULL,
    domain_id TEXT NOT NULL,
    purpose TEXT NOT NULL CHECK (purpose IN ('dkim', 'dkim_next', 'dkim_old', 'dkim_ed25519', 'dkim_ed25519_next',
        'dkim_ed25519_old', 'spf', 'return_path', 'dmarc')),
    state TEXT NOT NULL CHECK (state IN ('ok', 'missing', 'wrong', 'unknown')),
    detail TEXT NOT NULL,
    found TEXT NOT NULL,
    checked_at INTEGER NOT NULL,
    PRIMARY KEY (account_id, domain_id, purpose)
) STRICT, WITHOUT ROWID;

-- How many recipients a young domain has sent to on its last day, and how far it has come: `step` is the place of that
-- day's cap in the schedule. By its name: whoever removes it and adds it again goes on where it was.
CREATE TABLE warmups (
    account_id TEXT NOT NULL,
    domain TEXT NOT NULL,
    day INTEGER NOT NULL,
    step INTEGER NOT NULL,
    used INTEGER NOT NULL,
    PRIMARY KEY (account_id, domain)
) STRICT, WITHOUT ROWID;

-- Templates and layouts as they are sent: the content of the published version. `uses` has the aliases of the layout and
-- the parts, each between blanks.
CREATE TABLE templates (
    id TEXT NOT NULL PRIMARY KEY,
    account_id TEXT NOT NULL,
    alias TEXT NOT NULL,
    version INTEGER,
    layout TEXT,
    uses TEXT,
    subject TEXT NOT NULL,
    text TEXT,
    html TEXT,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    UNIQUE (account_id, alias)
) STRICT, WITHOUT ROWID;

CREATE TABLE template_versions (
    template_id TEXT NOT NULL,
    number INTEGER NOT NULL,
    account_id TEXT NOT NULL,
    saved_at INTEGER NOT NULL,
    saved_by TEXT NOT NULL,
    published_at INTEGER,
    layout TEXT,
    subject TEXT NOT NULL,
    -- Last, so that SQLite reads the others without them.
    text TEXT,
    html TEXT,
    sample TEXT,
    PRIMARY KEY (template_id, number)
) STRICT;
CREATE INDEX template_versions_by_account ON template_versions (account_id);


-- MAIL

-- `response` is the body of the 202 as it was sent: a replay answers with these very bytes. `metadata` is a JSON object of
-- strings. `is_test`: it only goes to the simulator. `return_path_domain` is the domain of the envelope senders, chosen
-- when the message is accepted; empty: that of its sender. `ended_at` is when the last recipient became final.
CREATE TABLE messages (
    account_id TEXT NOT NULL,
    id TEXT NOT NULL,
    credential_id TEXT NOT NULL,
    source TEXT NOT NULL CHECK (source = 'api' OR source = 'smtp' OR source = 'test'),
    sender TEXT NOT NULL,
    sender_key TEXT NOT NULL,
    subject TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status = 'queued' OR status = 'delivered' OR status = 'partial' OR status = 'failed'),
    billing_status TEXT NOT NULL
        CHECK (billing_status = 'reserved' OR billing_status = 'settled' OR billing_status = 'released'),
    recipient_count INTEGER NOT NULL,
    credits_reserved INTEGER NOT NULL,
    size INTEGER NOT NULL,
    request_id TEXT NOT NULL,
    response BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    ended_at INTEGER,
    has_body INTEGER NOT NULL DEFAULT 1 CHECK (has_body IN (0, 1)),
    return_path_domain TEXT NOT NULL DEFAULT '',
    metadata TEXT,
    send_at INTEGER,
    expires_at INTEGER,
    is_test INTEGER NOT NULL DEFAULT 0 CHECK (is_test IN (0, 1)),
    PRIMARY KEY (account_id, id)
) STRICT;
-- A message is found by how it ended, and by its sender. One that has not ended is found by the queue; delivered ones,
-- nearly all, by their time.
CREATE INDEX messages_undelivered ON messages (account_id, status, id)
    WHERE status <> 'queued' AND status <> 'delivered';
CREATE INDEX messages_by_sender ON messages (account_id, sender_key, id);
-- Retention: bodies go before the rest does. A message is in one of the two at a time.
CREATE INDEX messages_with_body ON messages (ended_at) WHERE ended_at IS NOT NULL AND has_body = 1;
CREATE INDEX messages_without_body ON messages (ended_at) WHERE ended_at IS NOT NULL AND has_body = 0;
-- Test messages, which may be few among many; the space that they take, and those that have expired.
CREATE INDEX messages_test ON messages (account_id, id) WHERE is_test = 1;
CREATE INDEX messages_test_ended ON messages (ended_at, account_id, size, recipient_count) WHERE is_test = 1;

-- Kept apart from the rows that change.
CREATE TABLE bodies (
    account_id TEXT NOT NULL,
    message_id TEXT NOT NULL,
    mime BLOB NOT NULL,
    PRIMARY KEY (message_id, account_id)
) STRICT;

CREATE TABLE recipients (
    account_id TEXT NOT NULL,
    message_id TEXT NOT NULL,
    id TEXT NOT NULL,
    email TEXT NOT NULL,
    email_key TEXT NOT NULL,
    domain TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status = 'queued' OR status = 'deferred' OR status = 'delivered' OR status = 'bounced'
        OR status = 'failed' OR status = 'canceled' OR status = 'expired'),
    billing_status TEXT NOT NULL
        CHECK (billing_status = 'reserved' OR billing_status = 'settled' OR billing_status = 'released'),
    attempt_count INTEGER NOT NULL,
    last_smtp_code INTEGER,
    last_smtp_response TEXT,
    delivered_at INTEGER,
    bounced_at INTEGER,
    PRIMARY KEY (message_id, account_id, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX recipients_by_email ON recipients (account_id, email_key, message_id);
-- Searches by outcome, cause and reply. Recipients that are queued or delivered are not in it, so accepting and delivering
-- mail does not write it.
CREATE INDEX recipients_undelivered ON recipients (account_id, status, message_id)
    WHERE status <> 'queued' AND status <> 'delivered';

CREATE TABLE message_tags (
    account_id TEXT NOT NULL,
    tag TEXT NOT NULL,
    message_id TEXT NOT NULL,
    PRIMARY KEY (account_id, tag, message_id)
) STRICT, WITHOUT ROWID;
-- The tags of a message that goes are found by it.
CREATE INDEX message_tags_of_message ON message_tags (account_id, message_id);

-- Messages by their metadata: an entry is a key and its value, `order:1042`. A key contains no colon.
CREATE TABLE message_metadata (
    account_id TEXT NOT NULL,
    entry TEXT NOT NULL,
    message_id TEXT NOT NULL,
    PRIMARY KEY (account_id, entry, message_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX message_metadata_of_message ON message_metadata (account_id, message_id);

-- Which messages were sent again, and as which. A message that is one names the other in its receipt.
CREATE TABLE resends (
    account_id TEXT NOT NULL,
    resend_of TEXT NOT NULL,
    message_id TEXT NOT NULL,
    PRIMARY KEY (account_id, resend_of, message_id)
) STRICT, WITHOUT ROWID;

-- The key of a batch has the response to all of its messages.
CREATE TABLE idempotency_keys (
    credential_id TEXT NOT NULL,
    key TEXT NOT NULL,
    account_id TEXT NOT NULL,
    body_hash BLOB NOT NULL,
    message_id TEXT NOT NULL,
    expires_at INTEGER NOT NULL,
    response BLOB,
    PRIMARY KEY (credential_id, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_keys_by_expiry ON idempotency_keys (expires_at);

-- Every attempt, with the destination's words. `verdict` is what followed from it, `fault` whose it was, `reason` the name
-- of the rule that said so. `tls` is empty for a connection in plain text, `source` is the name of the source address, and
-- empty where the system chose it.
CREATE TABLE attempts (
    account_id TEXT NOT NULL,
    message_id TEXT NOT NULL,
    recipient_id TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    duration INTEGER NOT NULL,
    provider_queue TEXT NOT NULL,
    host TEXT NOT NULL,
    address TEXT NOT NULL,
    source TEXT NOT NULL DEFAULT '',
    tls TEXT NOT NULL,
    stage TEXT NOT NULL,
    verdict TEXT NOT NULL CHECK (verdict = 'delivered' OR verdict = 'bounced' OR verdict = 'failed' OR verdict = 'retry'),
    fault TEXT,
    reason TEXT NOT NULL,
    smtp_code INTEGER,
    enhanced_code TEXT NOT NULL,
    response TEXT NOT NULL,
    in_doubt INTEGER NOT NULL CHECK (in_doubt IN (0, 1)),
    PRIMARY KEY (message_id, account_id, recipient_id, started_at)
) STRICT, WITHOUT ROWID;
-- The latest refusals of an account.
CREATE INDEX attempts_refused ON attempts (account_id, started_at) WHERE verdict IN ('bounced', 'failed');

-- What was said between us and a receiving server in attempts that did not succeed: commands and replies, at most 4 KiB.
CREATE TABLE attempt_conversations (
    account_id TEXT NOT NULL,
    message_id TEXT NOT NULL,
    recipient_id TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    conversation TEXT NOT NULL,
    PRIMARY KEY (account_id, message_id, started_at, recipient_id)
) STRICT, WITHOUT ROWID;

-- Reports that came back after a recipient was final (RFC 3464); the final state never changes.
CREATE TABLE async_bounces (
    account_id TEXT NOT NULL,
    message_id TEXT NOT NULL,
    recipient_id TEXT NOT NULL,
    received_at INTEGER NOT NULL,
    action TEXT NOT NULL,
    status TEXT NOT NULL,
    fault TEXT NOT NULL,
    response TEXT NOT NULL,
    PRIMARY KEY (account_id, message_id, recipient_id, received_at)
) STRICT, WITHOUT ROWID;

-- Addresses that mail must not go to: a recipient on the list is accepted and ends bounced without an attempt.
CREATE TABLE suppressions (
    account_id TEXT NOT NULL,
    email_key TEXT NOT NULL,
    source TEXT NOT NULL CHECK (source IN ('bounce', 'late_bounce', 'complaint', 'operator', 'account', 'import')),
    reason TEXT NOT NULL,
    smtp_code INTEGER,
    message_id TEXT,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (account_id, email_key)
) STRICT, WITHOUT ROWID;

-- What was accepted and what became of it, by hour. `provider` is the mailbox provider that gave the result; what was
-- accepted has none. `delivery_time` is the time from queue to delivery, summed over the delivered, `message_bytes` the
-- sum of the sizes of the accepted messages. Written with the mail itself, under the account's lock.
CREATE TABLE hourly_counts (
    account_id TEXT NOT NULL,
    hour INTEGER NOT NULL,
    provider TEXT NOT NULL,
    messages INTEGER NOT NULL,
    recipients INTEGER NOT NULL,
    delivered INTEGER NOT NULL,
    bounced INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    deferred INTEGER NOT NULL,
    delivery_time INTEGER NOT NULL DEFAULT 0,
    message_bytes INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (account_id, hour, provider)
) STRICT, WITHOUT ROWID;
CREATE INDEX hourly_counts_over ON hourly_counts (hour);

-- Recipients that bounced or failed, by the hour of acceptance, mailbox provider and reason: `hourly_counts` in more
-- detail. Written with the result, and only for those.
CREATE TABLE failure_counts (
    account_id TEXT NOT NULL,
    hour INTEGER NOT NULL,
    provider TEXT NOT NULL,
    reason TEXT NOT NULL,
    bounced INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    PRIMARY KEY (account_id, hour, provider, reason)
) STRICT, WITHOUT ROWID;
CREATE INDEX failure_counts_by_hour ON failure_counts (hour);

-- What the bounce guard counts, by day: recipients that became final after an attempt, those whose address does not exist,
-- and complaints.
CREATE TABLE bounce_guard_days (
    account_id TEXT NOT NULL,
    day INTEGER NOT NULL,
    recipients INTEGER NOT NULL,
    bounces INTEGER NOT NULL,
    complaints INTEGER NOT NULL,
    PRIMARY KEY (account_id, day)
) STRICT, WITHOUT ROWID;
CREATE INDEX bounce_guard_days_over ON bounce_guard_days (day);

-- Reports that counted for the bounce guard, and on which day. A report has two keys, and each counts once: its mailbox, an
-- address without what its owner can vary, and its signature, as "dkim:" and a hash.
CREATE TABLE bounce_guard_reports (
    account_id TEXT NOT NULL,
    report_key TEXT NOT NULL,
    day INTEGER NOT NULL,
    PRIMARY KEY (account_id, report_key)
) STRICT, WITHOUT ROWID;
CREATE INDEX bounce_guard_reports_over ON bounce_guard_reports (day);


-- QUEUE

-- One row for each recipient that is not final; the row goes with the final result. `queue_key` is the recipient's domain,
-- a blank, and the account: work is taken key by key, so that neither a destination nor an account can hold up another.
-- Recipients with little time have their key a second time, as `urgent_key`: ready ones are found by it before all others.
-- `ready` rows can be claimed. The others wait until `due_at`: for their next attempt, or for the end of a lease, which
-- `worker` holds then. A worker that is gone leaves its name behind, and `lost_leases` counts that.
CREATE TABLE queue (
    account_id TEXT NOT NULL,
    message_id TEXT NOT NULL,
    recipient_id TEXT NOT NULL,
    queue_key TEXT NOT NULL,
    urgent_key TEXT,
    email TEXT NOT NULL,
    email_key TEXT NOT NULL,
    size INTEGER NOT NULL,
    attempt_count INTEGER NOT NULL,
    lost_leases INTEGER NOT NULL,
    ready INTEGER NOT NULL CHECK (ready IN (0, 1)),
    queued_at INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    expires_at INTEGER,
    worker TEXT,
    PRIMARY KEY (account_id, message_id, recipient_id)
) STRICT, WITHOUT ROWID;
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
    account_id TEXT NOT NULL,
    domain TEXT NOT NULL,
    reason TEXT NOT NULL,
    held_at INTEGER NOT NULL,
    released_at INTEGER,
    in_doubt_before INTEGER,
    PRIMARY KEY (account_id, domain)
) STRICT, WITHOUT ROWID;

-- What workers know of the provider queues that are not simply open, so that an operator can see why mail waits.
CREATE TABLE provider_queues (
    worker TEXT NOT NULL,
    name TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('slowed', 'paused', 'blocked')),
    reason TEXT NOT NULL,
    until INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (worker, name)
) STRICT, WITHOUT ROWID;

-- Changes that operators make to provider queues at run time, on all hosts: by the name of a provider queue, or `others`.
-- A limit that is NULL is that of the settings. A pause and changed limits have a reason and an end each.
CREATE TABLE provider_overrides (
    name TEXT NOT NULL PRIMARY KEY,
    paused INTEGER NOT NULL CHECK (paused IN (0, 1)),
    pause_reason TEXT NOT NULL DEFAULT '',
    pause_until INTEGER,
    connections INTEGER,
    messages_per_second INTEGER,
    messages_per_connection INTEGER,
    limits_reason TEXT NOT NULL DEFAULT '',
    limits_until INTEGER,
    until INTEGER,
    set_by TEXT NOT NULL,
    set_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- What holds for source addresses at run time, on all hosts: paused, draining or warming. A pause may be for one provider;
-- otherwise `provider` is empty.
CREATE TABLE source_states (
    source TEXT NOT NULL,
    provider TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('paused', 'draining', 'warming')),
    reason TEXT NOT NULL,
    set_by TEXT NOT NULL,
    set_at INTEGER NOT NULL,
    until INTEGER,
    PRIMARY KEY (source, provider, state)
) STRICT, WITHOUT ROWID;

-- Attempts by source address, mailbox provider and day, and how they ended.
CREATE TABLE source_counts (
    source TEXT NOT NULL,
    provider TEXT NOT NULL,
    day INTEGER NOT NULL,
    delivered INTEGER NOT NULL,
    deferred INTEGER NOT NULL,
    refused INTEGER NOT NULL,
    blocked INTEGER NOT NULL,
    PRIMARY KEY (source, provider, day)
) STRICT, WITHOUT ROWID;
CREATE INDEX source_counts_over ON source_counts (day);

-- MTA-STS policies of destinations (RFC 8461), so that a restart or another host does not forget that a domain requires
-- TLS. `policy` is the text of the policy.
CREATE TABLE mta_sts_policies (
    domain TEXT NOT NULL PRIMARY KEY,
    policy_id TEXT NOT NULL,
    policy TEXT NOT NULL,
    fetched_at INTEGER NOT NULL,
    valid_until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX mta_sts_policies_over ON mta_sts_policies (valid_until);
CREATE INDEX mta_sts_policies_by_age ON mta_sts_policies (fetched_at);

-- The reports about TLS that recipient domains may ask for (RFC 8460), by day. `sent` are the URIs that have got it, one on
-- each line. A report is claimed by moving `due_at` ahead.
CREATE TABLE tls_reports (
    day INTEGER NOT NULL,
    domain TEXT NOT NULL,
    due_at INTEGER NOT NULL,
    attempt_count INTEGER NOT NULL,
    sent TEXT NOT NULL,
    PRIMARY KEY (day, domain)
) STRICT, WITHOUT ROWID;
CREATE INDEX tls_reports_due ON tls_reports (due_at);

-- What is reported: how many sessions had which result. `result` is JSON, and `fingerprint` its hash.
CREATE TABLE tls_results (
    day INTEGER NOT NULL,
    domain TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    result TEXT NOT NULL,
    sessions INTEGER NOT NULL,
    PRIMARY KEY (day, domain, fingerprint)
) STRICT, WITHOUT ROWID;


-- WEBHOOKS

-- Webhook endpoints. One of an account is the first, which is the contract's `/v1/webhook`. One that was removed keeps its
-- row until its log is swept, and is seen by nobody: what a new endpoint does cannot touch what an old one has left.
-- `version` is which data an event has. An endpoint gets events about messages with one of these tags and one of these
-- sender domains (a line for each; empty: all), of live or of test mode. `standard_signature`: requests are also signed as
-- Standard Webhooks are. `failing_since`: since when every attempt has failed. `disabled_reason`: why the service disabled
-- it. In the format of another service, which the first never has, `format_events` are the events in its words, and
-- `request_headers` what its requests have besides, encrypted.
CREATE TABLE webhooks (
    id TEXT NOT NULL PRIMARY KEY,
    account_id TEXT NOT NULL,
    url TEXT NOT NULL,
    events TEXT NOT NULL,
    enabled INTEGER NOT NULL CHECK (enabled IN (0, 1)),
    secret_hint TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    is_first INTEGER NOT NULL CHECK (is_first IN (0, 1)),
    version INTEGER NOT NULL CHECK (version IN (1, 2)),
    tags TEXT NOT NULL,
    sender_domains TEXT NOT NULL,
    mode TEXT NOT NULL CHECK (mode IN ('live', 'test')),
    standard_signature INTEGER NOT NULL CHECK (standard_signature IN (0, 1)),
    description TEXT NOT NULL,
    failing_since INTEGER,
    disabled_reason TEXT NOT NULL,
    format TEXT NOT NULL CHECK (format <> ''),
    format_events TEXT NOT NULL,
    request_headers BLOB,
    pinged_at INTEGER,
    removed_at INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX webhooks_by_account ON webhooks (account_id, id);
CREATE UNIQUE INDEX webhooks_first ON webhooks (account_id) WHERE is_first = 1 AND removed_at IS NULL;
CREATE INDEX webhooks_removed ON webhooks (removed_at) WHERE removed_at IS NOT NULL;

-- Signing secrets, encrypted. The newest has no end; earlier ones sign beside it until theirs.
CREATE TABLE webhook_secrets (
    account_id TEXT NOT NULL,
    webhook_id TEXT NOT NULL,
    version INTEGER NOT NULL,
    secret BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    PRIMARY KEY (account_id, webhook_id, version)
) STRICT, WITHOUT ROWID;
CREATE INDEX webhook_secrets_over ON webhook_secrets (expires_at) WHERE expires_at IS NOT NULL;

-- What was sent, or is to be. `body` is the request's bytes, made once. `ready` rows can be claimed. `waiting` rows wait
-- until `due_at`: for their next attempt, or for the end of a lease, which `worker` holds then. An attempt is counted when
-- it is claimed, so that a worker's death cannot make one too many. `url` is where the last attempt went.
CREATE TABLE webhook_deliveries (
    account_id TEXT NOT NULL,
    webhook_id TEXT NOT NULL,
    id TEXT NOT NULL,
    event_id TEXT NOT NULL,
    event_type TEXT NOT NULL,
    message_id TEXT,
    recipient_id TEXT,
    replay_of TEXT,
    url TEXT NOT NULL,
    body BLOB NOT NULL,
    state TEXT NOT NULL CHECK (state = 'ready' OR state = 'waiting' OR state = 'succeeded' OR state = 'failed'),
    attempt_count INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    worker TEXT,
    created_at INTEGER NOT NULL,
    ended_at INTEGER,
    PRIMARY KEY (account_id, webhook_id, id)
) STRICT;
-- With `due_at`, so that counting what is ready, and for how long, reads no bodies.
CREATE INDEX webhook_deliveries_ready ON webhook_deliveries (webhook_id, id, due_at) WHERE state = 'ready';
CREATE INDEX webhook_deliveries_waiting ON webhook_deliveries (due_at) WHERE state = 'waiting';
-- What failed and may be sent again.
CREATE INDEX webhook_deliveries_failed ON webhook_deliveries (webhook_id, id) WHERE state = 'failed';
CREATE INDEX webhook_deliveries_ended ON webhook_deliveries (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX webhook_deliveries_of_message ON webhook_deliveries (message_id, id);

-- Every attempt, with the endpoint's answer, cut. `error` says why it failed when there is no status to say so.
CREATE TABLE webhook_attempts (
    account_id TEXT NOT NULL,
    webhook_id TEXT NOT NULL,
    delivery_id TEXT NOT NULL,
    number INTEGER NOT NULL,
    started_at INTEGER NOT NULL,
    duration INTEGER NOT NULL,
    status_code INTEGER,
    response_body TEXT,
    error TEXT,
    PRIMARY KEY (account_id, webhook_id, delivery_id, number)
) STRICT, WITHOUT ROWID;


-- OPERATIONS

-- One row once a process with the installation key has opened the database. The fingerprint is derived from the key and
-- says nothing about it.
CREATE TABLE installation_key (
    only_row INTEGER NOT NULL PRIMARY KEY CHECK (only_row = 1),
    fingerprint BLOB NOT NULL
) STRICT, WITHOUT ROWID;

-- Keys that `postroad key rotate` replaced, encrypted with the current one: what they signed is accepted for a while.
CREATE TABLE previous_keys (
    fingerprint BLOB NOT NULL PRIMARY KEY,
    installation_key BLOB NOT NULL,
    replaced_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The processes that run the service, as they report themselves: which roles run, and on which hosts. `rates` is what a
-- process does in a second, a JSON object.
CREATE TABLE processes (
    name TEXT NOT NULL PRIMARY KEY,
    host TEXT NOT NULL,
    process_id INTEGER NOT NULL,
    roles TEXT NOT NULL,
    version TEXT NOT NULL,
    rates TEXT NOT NULL DEFAULT '',
    started_at INTEGER NOT NULL,
    seen_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The free space of a file system, as a host measures it every hour: how fast its disk fills.
CREATE TABLE disk_samples (
    host TEXT NOT NULL,
    folder TEXT NOT NULL,
    sampled_at INTEGER NOT NULL,
    free_bytes INTEGER NOT NULL,
    PRIMARY KEY (host, folder, sampled_at)
) STRICT, WITHOUT ROWID;

-- Long work that an operator has started. The process that runs it reports its progress; one that no longer does has
-- stopped.
CREATE TABLE operator_jobs (
    id TEXT NOT NULL PRIMARY KEY,
    kind TEXT NOT NULL,
    subject TEXT NOT NULL,
    state TEXT NOT NULL,
    done INTEGER NOT NULL,
    total INTEGER,
    result TEXT NOT NULL,
    created_by TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    finished_at INTEGER
) STRICT, WITHOUT ROWID;

-- What people are told by mail. `account_id` is empty for a notice about the installation, `user_id` unless it is for one
-- person. `resolved_at` is when it was found out who gets it.
CREATE TABLE notices (
    id TEXT NOT NULL PRIMARY KEY,
    kind TEXT NOT NULL,
    account_id TEXT NOT NULL,
    user_id TEXT NOT NULL,
    subject TEXT NOT NULL,
    content TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    resolved_at INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX notices_by_subject ON notices (kind, subject, created_at);
CREATE INDEX notices_by_account ON notices (account_id, kind, created_at);
CREATE INDEX notices_by_time ON notices (created_at);
CREATE INDEX notices_unresolved ON notices (id) WHERE resolved_at IS NULL;

-- Who gets a notice: a person, or the webhook of the installation, which has an empty `user_id`.
CREATE TABLE notice_mails (
    user_id TEXT NOT NULL,
    notice_id TEXT NOT NULL,
    is_digest INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    sent_at INTEGER,
    PRIMARY KEY (user_id, notice_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX notice_mails_unsent ON notice_mails (due_at) WHERE sent_at IS NULL;
CREATE INDEX notice_mails_sent ON notice_mails (user_id, sent_at);
CREATE INDEX notice_mails_by_time ON notice_mails (due_at);

-- How a person wants the notices of a kind, where it is not the default of that kind.
CREATE TABLE notice_choices (
    user_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    choice TEXT NOT NULL,
    PRIMARY KEY (user_id, kind)
) STRICT, WITHOUT ROWID;

-- Certificates that the service obtains by itself (ACME, RFC 8555), shared by all hosts. One host orders at a time: it
-- claims the row until a time. Until the first certificate is there, its chain and its key are empty. Private keys are
-- encrypted.
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
