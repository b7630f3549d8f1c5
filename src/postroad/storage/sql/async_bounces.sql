-- name: addressees
-- The recipients of one message, to match a report with.
SELECT id, email_key, status FROM recipients WHERE account_id = $1 AND message_id = $2 ORDER BY id;

-- name: insert
-- Reports about final recipients.
INSERT INTO async_bounces (account_id, message_id, recipient_id, received_at, action, status, fault, response)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8);

-- name: providers_of
-- The provider queues of recipients about whom a report of one kind came, by the id of the message. Reports are rare.
SELECT (SELECT provider_queue FROM attempts
        WHERE attempts.account_id = $1 AND attempts.message_id = async_bounces.message_id
            AND attempts.recipient_id = async_bounces.recipient_id
        ORDER BY attempts.started_at DESC LIMIT 1)
FROM async_bounces WHERE account_id = $1 AND message_id >= $2 AND message_id < $3 AND action = $4 LIMIT $5;

-- name: of_message
-- The reports about one message, by recipient and time.
SELECT account_id, message_id, recipient_id, received_at, action, status, fault, response FROM async_bounces
WHERE account_id = $1 AND message_id = $2 ORDER BY recipient_id, received_at;
