-- compatible from: 1

-- Who has left which list of an account. The list of a message goes with its recipient in the queue.
CREATE TABLE unsubscribes (
    account_id TEXT NOT NULL,
    list_name TEXT NOT NULL,
    email_key TEXT NOT NULL,
    source TEXT NOT NULL,
    message_id TEXT,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (account_id, list_name, email_key)
) STRICT, WITHOUT ROWID;

ALTER TABLE queue ADD COLUMN list_name TEXT;
-- Why a recipient has ended without an attempt, where that is not the suppression list.
ALTER TABLE recipients ADD COLUMN cause TEXT;
