-- compatible from: 12
-- What people are told by mail (services/notices/). `account_id` is empty for one about the installation, `user_id` unless
-- it is for one person, `resolved_at` until it is known who gets it.
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
-- Keys that expire soon.
CREATE INDEX api_keys_by_expiry ON api_keys (expires_at) WHERE expires_at IS NOT NULL;
