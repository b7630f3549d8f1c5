-- name: insert
-- The recipients of accepted messages.
INSERT INTO recipients (message_id, id, account_id, email, email_key, domain, status, billing_status, attempt_count)
VALUES ($1, $2, $3, $4, $5, $6, 'queued', 'reserved', 0);

-- name: of_message
-- The recipients of one message, in the order in which they were written.
SELECT id, message_id, email, status, billing_status, attempt_count, last_smtp_code, last_smtp_response, delivered_at,
    bounced_at
FROM recipients WHERE message_id = $2 AND account_id = $1 ORDER BY id;
