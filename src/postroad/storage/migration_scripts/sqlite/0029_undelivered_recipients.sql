-- compatible from: 12
-- Searches by outcome, cause and reply. Recipients that are queued or delivered are not in it, so accepting and
-- delivering mail does not write it.
CREATE INDEX recipients_undelivered ON recipients (account_id, status, message_id)
    WHERE status <> 'queued' AND status <> 'delivered';
