-- compatible from: 12
-- What a caller may say of a message besides its content: data of its own (a JSON object of strings), when to send it, when to
-- stop trying; and whether it only goes to the simulator.
ALTER TABLE messages ADD COLUMN metadata TEXT;
ALTER TABLE messages ADD COLUMN send_at INTEGER;
ALTER TABLE messages ADD COLUMN expires_at INTEGER;
ALTER TABLE messages ADD COLUMN is_test INTEGER NOT NULL DEFAULT 0 CHECK (is_test IN (0, 1));
ALTER TABLE queue ADD COLUMN expires_at INTEGER;

-- Recipients may also be canceled or expire. Only the text of the schema changes, as in 0006_quick_rules.sql.
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql, 'OR status = ''bounced'' OR status = ''failed'')',
    'OR status = ''bounced'' OR status = ''failed'' OR status = ''canceled'' OR status = ''expired'')')
WHERE type = 'table' AND name = 'recipients';
PRAGMA writable_schema = RESET;
