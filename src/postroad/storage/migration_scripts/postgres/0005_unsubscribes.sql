-- compatible from: 1

-- Who has left which list of an account. The list of a message goes with its recipient in the queue.
CREATE TABLE unsubscribes (
    account_id TEXT COLLATE "C" NOT NULL,
    list_name TEXT COLLATE "C" NOT NULL,
    email_key TEXT COLLATE "C" NOT NULL,
    source TEXT COLLATE "C" NOT NULL,
    message_id TEXT COLLATE "C",
    created_at BIGINT NOT NULL,
    PRIMARY KEY (account_id, list_name, email_key)
);

ALTER TABLE queue ADD COLUMN list_name TEXT COLLATE "C";
-- Why a recipient has ended without an attempt, where that is not the suppression list.
ALTER TABLE recipients ADD COLUMN cause TEXT COLLATE "C";
