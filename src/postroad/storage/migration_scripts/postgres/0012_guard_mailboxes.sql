-- Mailboxes whose report counted for the bounce guard, and on which day (days since 1970): one counts once in a window. A
-- mailbox is an address without what its owner can vary.
CREATE TABLE bounce_guard_mailboxes (
    account_id TEXT COLLATE "C" NOT NULL,
    mailbox TEXT COLLATE "C" NOT NULL,
    day BIGINT NOT NULL,
    PRIMARY KEY (account_id, mailbox)
);
CREATE INDEX bounce_guard_mailboxes_over ON bounce_guard_mailboxes (day);
