-- name: addressees
-- The recipients of one message, to match a report with.
SELECT id, email_key, status FROM recipients WHERE account_id = $1 AND message_id = $2 ORDER BY id;

-- name: insert
-- Reports about final recipients.
INSERT INTO async_bounces (account_id, message_id, recipient_id, received_at, action, status, fault, response)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8);

-- name: of_message
-- The reports about one message, by recipient and time.
SELECT account_id, message_id, recipient_id, received_at, action, status, fault, response FROM async_bounces
WHERE account_id = $1 AND message_id = $2 ORDER BY recipient_id, received_at;
