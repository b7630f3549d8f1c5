-- name: insert
-- New attempts; a repeated one is ignored.
INSERT INTO attempts (account_id, message_id, recipient_id, started_at, duration, provider_queue, host, address, tls, stage,
    verdict, fault, reason, smtp_code, enhanced_code, response, in_doubt, source)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18) ON CONFLICT DO NOTHING;

-- name: insert_conversations
-- What was said in attempts; a repeated one is ignored.
INSERT INTO attempt_conversations (account_id, message_id, recipient_id, started_at, conversation)
VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING;

-- name: conversations
-- What was said in attempts of one message, latest first.
SELECT recipient_id, started_at, conversation FROM attempt_conversations
WHERE account_id = $1 AND message_id = $2 ORDER BY started_at DESC LIMIT $3;

-- name: of_message
-- The latest attempts of one message, in order.
SELECT * FROM (
    SELECT account_id, message_id, recipient_id, started_at, duration, provider_queue, host, address, tls, stage,
        verdict, fault, reason, smtp_code, enhanced_code, response, in_doubt, source
    FROM attempts WHERE account_id = $1 AND message_id = $2 ORDER BY started_at DESC LIMIT $3) AS latest
ORDER BY recipient_id, started_at;

-- name: latest_refused
-- The attempts of an account that ended with a final refusal, newest first, without those of test mail.
SELECT message_id, recipient_id,
    (SELECT email FROM recipients
        WHERE recipients.account_id = attempts.account_id AND recipients.message_id = attempts.message_id
            AND recipients.id = attempts.recipient_id),
    started_at, verdict, fault, reason, smtp_code, response
FROM attempts WHERE account_id = $1 AND verdict IN ('bounced', 'failed') AND provider_queue <> 'simulator' ORDER BY started_at DESC LIMIT $2;

-- name: latest_ends_of_message
-- How the latest attempts of messages ended, latest first, each with the beginning of its reply.
SELECT recipient_id, started_at + duration, verdict, smtp_code, substr(response, 1, $4)
FROM attempts WHERE account_id = $1 AND message_id = $2 ORDER BY started_at DESC LIMIT $3;

-- name: last_ends_of_message
-- When the last attempt for each recipient of messages ended.
SELECT recipient_id, max(started_at + duration)
FROM attempts WHERE account_id = $1 AND message_id = $2 GROUP BY recipient_id;

-- name: refusal_examples
-- The final refusals of an account between two times, newest first, without those of test mail.
SELECT message_id, started_at, provider_queue, reason, smtp_code, response FROM attempts
WHERE account_id = $1 AND started_at >= $2 AND started_at < $3 AND verdict IN ('bounced', 'failed')
    AND provider_queue <> 'simulator'
ORDER BY started_at DESC LIMIT $4;
