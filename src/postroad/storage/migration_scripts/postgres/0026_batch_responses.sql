-- compatible from: 12
-- The key of a batch has the response to all of its messages.
ALTER TABLE idempotency_keys ADD COLUMN response BYTEA;
