-- name: insert
-- The recipients of accepted messages.
INSERT INTO recipients (message_id, id, account_id, email, email_key, domain, status, billing_status, attempt_count)
SELECT message_id, id, account_id, email, email_key, domain, 'queued', 'reserved', 0
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[])
    AS new (message_id, id, account_id, email, email_key, domain);

-- name: record
-- The result of an attempt, or a decision without one; final recipients are neither changed nor returned.
UPDATE recipients SET status = new.status, billing_status = new.billing_status,
    attempt_count = recipients.attempt_count + new.attempts, last_smtp_code = new.last_smtp_code,
    last_smtp_response = new.last_smtp_response, delivered_at = new.delivered_at, bounced_at = new.bounced_at,
    cause = new.cause
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::bigint[], $8::text[],
    $9::bigint[], $10::bigint[], $11::text[])
    AS new (account_id, message_id, id, status, billing_status, attempts, last_smtp_code, last_smtp_response, delivered_at,
        bounced_at, cause)
WHERE recipients.account_id = new.account_id AND recipients.message_id = new.message_id AND recipients.id = new.id
    AND recipients.status IN ('queued', 'deferred')
RETURNING recipients.account_id, recipients.message_id, recipients.id;

-- name: tally
-- Counts of the recipients of messages.
SELECT account_id, message_id, COUNT(*), SUM(CASE WHEN status = 'delivered' THEN 1 ELSE 0 END)::bigint,
    SUM(CASE WHEN billing_status = 'reserved' THEN 1 ELSE 0 END)::bigint,
    SUM(CASE WHEN billing_status = 'released' THEN 1 ELSE 0 END)::bigint
FROM recipients WHERE (account_id, message_id) IN (SELECT * FROM unnest($1::text[], $2::text[]))
GROUP BY account_id, message_id;

-- name: leading_of_message
-- The recipient of each message that says most about it, failures first, and why its last attempt ended so.
SELECT chosen.message_id, email, status, attempt_count, last_smtp_code, last_smtp_response,
    (SELECT reason FROM attempts
        WHERE attempts.account_id = chosen.account_id AND attempts.message_id = chosen.message_id
            AND attempts.recipient_id = chosen.id
        ORDER BY started_at DESC LIMIT 1)
FROM unnest($1::text[], $2::text[]) AS wanted (account_id, message_id)
CROSS JOIN LATERAL (
    SELECT account_id, message_id, id, email, status, attempt_count, last_smtp_code, last_smtp_response FROM recipients
    WHERE recipients.account_id = wanted.account_id AND recipients.message_id = wanted.message_id
    ORDER BY CASE status WHEN 'bounced' THEN 0 WHEN 'failed' THEN 1 WHEN 'expired' THEN 2 WHEN 'deferred' THEN 3
        WHEN 'queued' THEN 4 WHEN 'canceled' THEN 5 ELSE 6 END, id LIMIT 1) AS chosen;

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
FROM recipients WHERE (account_id, message_id) IN (SELECT * FROM unnest($1::text[], $2::text[]))
ORDER BY message_id, id;
