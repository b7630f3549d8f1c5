-- compatible from: 12
-- What people are told by mail (services/notices/). `account_id` is empty for one about the installation, `user_id` unless
-- it is for one person, `resolved_at` until it is known who gets it.
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
-- Keys that expire soon.
CREATE INDEX api_keys_by_expiry ON api_keys (expires_at) WHERE expires_at IS NOT NULL;
