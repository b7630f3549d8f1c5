-- compatible from: 12
-- Messages by their metadata: an entry is a key and its value, `order:1042`. A key contains no colon.
CREATE TABLE message_metadata (
    account_id TEXT NOT NULL,
    entry TEXT NOT NULL,
    message_id TEXT NOT NULL,
    PRIMARY KEY (account_id, entry, message_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX message_metadata_of_message ON message_metadata (account_id, message_id);
