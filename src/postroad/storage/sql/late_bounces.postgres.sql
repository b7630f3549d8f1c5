-- name: account_of
-- The account of a message: one look into the index for each account, however large the table.
SELECT accounts.id FROM accounts
CROSS JOIN LATERAL (
    SELECT 1 FROM messages WHERE messages.account_id = accounts.id AND messages.id = $1 LIMIT 1) AS found
LIMIT 1;

-- name: addressees
-- The recipients of one message, as reports name them. Held, so that they cannot go before what is written beside them.
SELECT id, email_key, status FROM recipients WHERE account_id = $1 AND message_id = $2 ORDER BY id FOR KEY SHARE;

-- name: insert
-- Reports about recipients that were final.
INSERT INTO late_bounces (account_id, message_id, recipient_id, received_at, action, status, fault, response)
SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::text[], $6::text[], $7::text[], $8::text[]);
