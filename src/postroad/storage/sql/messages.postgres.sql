-- name: insert
-- Accepted messages.
INSERT INTO messages (id, account_id, credential_id, source, sender, sender_key, subject, status, billing_status,
    recipient_count, credits_reserved, size, request_id, response, created_at)
SELECT id, account_id, credential_id, source, sender, sender_key, subject, 'queued', 'reserved', recipient_count,
    recipient_count, size, request_id, response, created_at
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::bigint[], $9::bigint[],
    $10::text[], $11::bytea[], $12::bigint[])
    AS new (id, account_id, credential_id, source, sender, sender_key, subject, recipient_count, size, request_id, response,
        created_at);

-- name: insert_tags
-- Their tags, for looking up.
INSERT INTO message_tags (account_id, tag, message_id) SELECT * FROM unnest($1::text[], $2::text[], $3::text[]);
