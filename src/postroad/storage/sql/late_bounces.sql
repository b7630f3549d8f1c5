-- name: account_of
-- The account of a message. Messages are kept by account, so that each account is asked; reports are rare.
SELECT accounts.id FROM accounts CROSS JOIN messages
WHERE messages.account_id = accounts.id AND messages.id = $1 LIMIT 1;

-- name: addressees
-- The recipients of one message, as reports name them.
SELECT id, email_key, status FROM recipients WHERE account_id = $1 AND message_id = $2 ORDER BY id;

-- name: insert
-- Reports about recipients that were final.
INSERT INTO late_bounces (account_id, message_id, recipient_id, received_at, action, status, fault, response)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8);

-- name: of_message
-- What was reported about one message, by recipient and time.
SELECT account_id, message_id, recipient_id, received_at, action, status, fault, response FROM late_bounces
WHERE account_id = $1 AND message_id = $2 ORDER BY recipient_id, received_at;
