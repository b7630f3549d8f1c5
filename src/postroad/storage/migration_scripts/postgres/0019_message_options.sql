-- compatible from: 12
-- What a caller may say of a message besides its content: data of its own (a JSON object of strings), when to send it, when to
-- stop trying; and whether it only goes to the simulator.
ALTER TABLE messages ADD COLUMN metadata TEXT COLLATE "C";
ALTER TABLE messages ADD COLUMN send_at BIGINT;
ALTER TABLE messages ADD COLUMN expires_at BIGINT;
ALTER TABLE messages ADD COLUMN is_test BIGINT NOT NULL DEFAULT 0 CHECK (is_test IN (0, 1));
ALTER TABLE queue ADD COLUMN expires_at BIGINT;

-- Recipients may also be canceled or expire.
ALTER TABLE recipients DROP CONSTRAINT recipients_status_check;
ALTER TABLE recipients ADD CONSTRAINT recipients_status_check
    CHECK (status IN ('queued', 'deferred', 'delivered', 'bounced', 'failed', 'canceled', 'expired')) NOT VALID;
