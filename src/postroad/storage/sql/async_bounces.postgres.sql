-- name: addressees
-- The recipients of one message, to match a report with. Locked, so that retention cannot delete them meanwhile.
SELECT id, email_key, status FROM recipients WHERE account_id = $1 AND message_id = $2 ORDER BY id FOR KEY SHARE;

-- name: insert
-- Reports about final recipients.
INSERT INTO async_bounces (account_id, message_id, recipient_id, received_at, action, status, fault, response)
SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::text[], $6::text[], $7::text[], $8::text[]);
