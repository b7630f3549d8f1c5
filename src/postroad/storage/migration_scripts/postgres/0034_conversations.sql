-- compatible from: 12
-- What was said between us and a receiving server in attempts that did not succeed: commands and replies, at most 4 KiB each.
CREATE TABLE attempt_conversations (
    account_id TEXT COLLATE "C" NOT NULL,
    message_id TEXT COLLATE "C" NOT NULL,
    recipient_id TEXT COLLATE "C" NOT NULL,
    started_at BIGINT NOT NULL,
    conversation TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (account_id, message_id, started_at, recipient_id)
);
