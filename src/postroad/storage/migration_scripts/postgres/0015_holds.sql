-- compatible from: 12
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
