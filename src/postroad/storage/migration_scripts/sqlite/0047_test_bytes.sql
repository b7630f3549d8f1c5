-- compatible from: 12
-- The space that test mail takes, and test mail that has expired. Live mail does not write it.
CREATE INDEX messages_test_ended ON messages (ended_at, account_id, size, recipient_count) WHERE is_test = 1;
