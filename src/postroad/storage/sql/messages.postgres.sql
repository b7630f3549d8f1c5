-- name: insert
-- Accepted messages.
INSERT INTO messages (id, account_id, credential_id, source, sender, sender_key, subject, status, billing_status,
    recipient_count, credits_reserved, size, request_id, response, created_at, return_path_domain, metadata,
    send_at, expires_at, is_test)
SELECT id, account_id, credential_id, source, sender, sender_key, subject, 'queued', 'reserved', recipient_count,
    credits_reserved, size, request_id, response, created_at, return_path_domain, metadata, send_at,
    expires_at, is_test
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::bigint[], $9::bigint[],
    $10::bigint[], $11::text[], $12::bytea[], $13::bigint[], $14::text[], $15::text[], $16::bigint[], $17::bigint[],
    $18::bigint[])
    AS new (id, account_id, credential_id, source, sender, sender_key, subject, recipient_count, credits_reserved, size,
        request_id, response, created_at, return_path_domain, metadata, send_at, expires_at, is_test);

-- name: insert_bodies
-- Their bodies.
INSERT INTO bodies (account_id, message_id, mime) SELECT * FROM unnest($1::text[], $2::text[], $3::bytea[]);

-- name: insert_tags
-- Their tags.
INSERT INTO message_tags (account_id, tag, message_id) SELECT * FROM unnest($1::text[], $2::text[], $3::text[]);

-- name: insert_metadata
-- Their metadata.
INSERT INTO message_metadata (account_id, entry, message_id) SELECT * FROM unnest($1::text[], $2::text[], $3::text[]);

-- name: finish
-- Messages whose recipients are all final.
UPDATE messages SET status = final.status, billing_status = final.billing_status, ended_at = final.ended_at
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[])
    AS final (account_id, id, status, billing_status, ended_at)
WHERE messages.account_id = final.account_id AND messages.id = final.id;

-- name: outgoing
-- What is sent of a message, and how many recipients it has.
SELECT messages.account_id, messages.id, sender_key, recipient_count, mime, return_path_domain
FROM unnest($1::text[], $2::text[]) AS wanted (account_id, id)
JOIN messages ON messages.account_id = wanted.account_id AND messages.id = wanted.id
JOIN bodies ON bodies.account_id = messages.account_id AND bodies.message_id = messages.id;

-- name: event_details
-- Recipients and their messages, as events contain them.
SELECT messages.account_id, messages.id, recipients.id, email, sender_key, subject,
    return_path_domain, is_test
FROM unnest($1::text[], $2::text[], $3::text[]) AS wanted (account_id, message_id, id)
JOIN recipients ON recipients.account_id = wanted.account_id AND recipients.message_id = wanted.message_id
    AND recipients.id = wanted.id
JOIN messages ON messages.account_id = recipients.account_id AND messages.id = recipients.message_id;

-- name: event_context
-- What events of version 2 contain besides.
SELECT messages.account_id, messages.id, recipients.id, attempt_count, sender, metadata, send_at, source
FROM unnest($1::text[], $2::text[], $3::text[]) AS wanted (account_id, message_id, id)
JOIN recipients ON recipients.account_id = wanted.account_id AND recipients.message_id = wanted.message_id
    AND recipients.id = wanted.id
JOIN messages ON messages.account_id = recipients.account_id AND messages.id = recipients.message_id;

-- name: heads
-- The beginning of the MIME of messages: more than the header of almost any.
SELECT bodies.account_id, bodies.message_id, substr(mime, 1, 32768)
FROM unnest($1::text[], $2::text[]) AS wanted (account_id, message_id)
JOIN bodies ON bodies.account_id = wanted.account_id AND bodies.message_id = wanted.message_id;

-- name: tags
-- The tags of messages.
SELECT message_tags.account_id, message_tags.message_id, tag
FROM unnest($1::text[], $2::text[]) AS wanted (account_id, message_id)
JOIN message_tags ON message_tags.account_id = wanted.account_id AND message_tags.message_id = wanted.message_id;

-- name: metadata
-- The metadata of messages that have some.
SELECT id, metadata FROM messages
WHERE (account_id, id) IN (SELECT * FROM unnest($1::text[], $2::text[])) AND metadata IS NOT NULL;

-- name: account_of
-- The account of a message: one index lookup for each account, however large the table.
SELECT accounts.id FROM accounts
CROSS JOIN LATERAL (
    SELECT 1 FROM messages WHERE messages.account_id = accounts.id AND messages.id = $1 LIMIT 1) AS found
LIMIT 1;

-- name: uncharged
-- Those of some messages that cost no credits, and whether they are test messages, which never do.
SELECT messages.account_id, messages.id, is_test FROM unnest($1::text[], $2::text[]) AS asked (account_id, id)
JOIN messages ON messages.account_id = asked.account_id AND messages.id = asked.id
WHERE messages.credits_reserved = 0;

-- name: test_bytes_by_account
-- The bytes of the test messages of each account, with $1 for each recipient, from an index of test messages alone.
SELECT account_id, SUM(size + $1::BIGINT * recipient_count)::BIGINT FROM messages WHERE is_test = 1 GROUP BY account_id;
