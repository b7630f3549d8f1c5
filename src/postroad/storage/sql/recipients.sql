-- name: insert
-- The recipients of accepted messages.
INSERT INTO recipients (message_id, id, account_id, email, email_key, domain, status, billing_status, attempt_count)
VALUES ($1, $2, $3, $4, $5, $6, 'queued', 'reserved', 0);

-- name: of_message
-- The recipients of one message, in the order of the request.
SELECT id, message_id, email, status, billing_status, attempt_count, last_smtp_code, last_smtp_response, delivered_at,
    bounced_at
FROM recipients WHERE message_id = $2 AND account_id = $1 ORDER BY id;

-- name: record
-- The result of an attempt, or a decision without one; final recipients are neither changed nor returned.
UPDATE recipients SET status = $4, billing_status = $5, attempt_count = attempt_count + $6, last_smtp_code = $7,
    last_smtp_response = $8, delivered_at = $9, bounced_at = $10
WHERE account_id = $1 AND message_id = $2 AND id = $3 AND status IN ('queued', 'deferred')
RETURNING account_id, message_id, id;

-- name: tally
-- Counts of the recipients of messages.
SELECT account_id, message_id, COUNT(*), SUM(CASE WHEN status = 'delivered' THEN 1 ELSE 0 END),
    SUM(CASE WHEN billing_status = 'reserved' THEN 1 ELSE 0 END),
    SUM(CASE WHEN billing_status = 'released' THEN 1 ELSE 0 END)
FROM recipients WHERE account_id = $1 AND message_id = $2 GROUP BY account_id, message_id;

-- name: first_of_message
-- The first recipient of messages, in the order of the request.
SELECT message_id, email FROM recipients WHERE account_id = $1 AND message_id = $2 ORDER BY id LIMIT 1;
