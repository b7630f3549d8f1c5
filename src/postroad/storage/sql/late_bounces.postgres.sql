-- name: account_of
-- The account of a message: one look into the index for each account, however large the table.
SELECT accounts.id FROM accounts
CROSS JOIN LATERAL (
    SELECT 1 FROM messages WHERE messages.account_id = accounts.id AND messages.id = $1 LIMIT 1) AS found
LIMIT 1;

-- name: lock
-- One report about a message at a time. A lock of its own: the rows of a message belong to those who deliver it.
SELECT pg_advisory_xact_lock(hashtextextended($1, 7082511));

-- name: insert
-- Reports about recipients that were final.
INSERT INTO late_bounces (account_id, message_id, recipient_id, received_at, action, status, fault, response)
SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::text[], $6::text[], $7::text[], $8::text[]);
