-- name: insert
-- The recipients of accepted messages.
INSERT INTO recipients (message_id, id, account_id, email, email_key, domain, status, billing_status, attempt_count)
SELECT message_id, id, account_id, email, email_key, domain, 'queued', 'reserved', 0
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[])
    AS new (message_id, id, account_id, email, email_key, domain);
