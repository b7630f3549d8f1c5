-- Indexes that look for an address begin with it. Those that begin with the account also serve a look for a message of an
-- account, by walking through all that the account has; in a new database PostgreSQL takes that for as good as the primary
-- key, and keeps the plan for as long as it has not counted the rows.

DROP INDEX messages_by_sender;
CREATE INDEX messages_by_sender ON messages (sender_key, account_id, id);
DROP INDEX recipients_by_email;
CREATE INDEX recipients_by_email ON recipients (email_key, account_id, message_id);
