-- compatible from: 12
-- Lists of test messages, which may be few among many.
CREATE INDEX messages_test ON messages (account_id, id) WHERE is_test = 1;
