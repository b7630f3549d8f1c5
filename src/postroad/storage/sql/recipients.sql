-- name: insert
-- The recipients of accepted messages.
INSERT INTO recipients (message_id, id, account_id, email, email_key, domain, status, billing_status, attempt_count)
VALUES ($1, $2, $3, $4, $5, $6, 'queued', 'reserved', 0);

-- name: of_message
-- The recipients of one message, in the order of the request.
SELECT id, message_id, email, status, billing_status, attempt_count, last_smtp_code, last_smtp_response, delivered_at,
    bounced_at, cause
FROM recipients WHERE message_id = $2 AND account_id = $1 ORDER BY id;

-- name: record
-- The result of an attempt, or a decision without one; final recipients are neither changed nor returned.
UPDATE recipients SET status = $4, billing_status = $5, attempt_count = attempt_count + $6, last_smtp_code = $7,
    last_smtp_response = $8, delivered_at = $9, bounced_at = $10, cause = $11
WHERE account_id = $1 AND message_id = $2 AND id = $3 AND status IN ('queued', 'deferred')
RETURNING account_id, message_id, id;

-- name: tally
-- Counts of the recipients of messages.
SELECT account_id, message_id, COUNT(*), SUM(CASE WHEN status = 'delivered' THEN 1 ELSE 0 END),
    SUM(CASE WHEN billing_status = 'reserved' THEN 1 ELSE 0 END),
    SUM(CASE WHEN billing_status = 'released' THEN 1 ELSE 0 END)
FROM recipients WHERE account_id = $1 AND message_id = $2 GROUP BY account_id, message_id;

-- name: leading_of_message
-- The recipient of each message that says most about it, failures first, and why its last attempt ended so.
SELECT message_id, email, status, attempt_count, last_smtp_code, last_smtp_response,
    (SELECT reason FROM attempts
        WHERE attempts.account_id = chosen.account_id AND attempts.message_id = chosen.message_id
            AND attempts.recipient_id = chosen.id
        ORDER BY started_at DESC LIMIT 1)
FROM (
    SELECT account_id, message_id, id, email, status, attempt_count, last_smtp_code, last_smtp_response FROM recipients
    WHERE account_id = $1 AND message_id = $2
    ORDER BY CASE status WHEN 'bounced' THEN 0 WHEN 'failed' THEN 1 WHEN 'expired' THEN 2 WHEN 'deferred' THEN 3
        WHEN 'queued' THEN 4 WHEN 'canceled' THEN 5 ELSE 6 END, id LIMIT 1) AS chosen;

-- name: of_address
-- The messages to one address, newest first. Found in the index alone first, or SQLite reads the recipients by time.
SELECT messages.id, subject, created_at, is_test, recipients.status, attempt_count, last_smtp_code, last_smtp_response
FROM (
    SELECT account_id, message_id, id FROM recipients
    WHERE account_id = $1 AND email_key = $2 ORDER BY message_id DESC LIMIT $3) AS sent
CROSS JOIN recipients CROSS JOIN messages
WHERE recipients.account_id = sent.account_id AND recipients.message_id = sent.message_id AND recipients.id = sent.id
    AND messages.account_id = sent.account_id AND messages.id = sent.message_id
ORDER BY sent.message_id DESC;

-- name: first_of_address
-- The oldest message to one address.
SELECT created_at FROM messages WHERE account_id = $1 AND id = (
    SELECT message_id FROM recipients WHERE account_id = $1 AND email_key = $2 ORDER BY message_id LIMIT 1);

-- name: results_of_message
-- The recipients of messages, each with the reason and the enhanced status code of its last attempt.
SELECT message_id, id, email, status, attempt_count, last_smtp_code, last_smtp_response, delivered_at, bounced_at,
    (SELECT reason FROM attempts
        WHERE attempts.account_id = recipients.account_id AND attempts.message_id = recipients.message_id
            AND attempts.recipient_id = recipients.id
        ORDER BY started_at DESC LIMIT 1),
    (SELECT enhanced_code FROM attempts
        WHERE attempts.account_id = recipients.account_id AND attempts.message_id = recipients.message_id
            AND attempts.recipient_id = recipients.id
        ORDER BY started_at DESC LIMIT 1)
FROM recipients WHERE account_id = $1 AND message_id = $2 ORDER BY id;
