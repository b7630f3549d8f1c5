-- compatible from: 12
-- Recipients with little time have their key a second time: ready ones are found by it before all others. Those with any
-- time are found when it is over. Both indexes are empty for other mail.
ALTER TABLE queue ADD COLUMN urgent_key TEXT;
CREATE INDEX queue_urgent ON queue (urgent_key, recipient_id) WHERE ready = 1 AND urgent_key IS NOT NULL;
CREATE INDEX queue_expiring ON queue (expires_at) WHERE expires_at IS NOT NULL;
