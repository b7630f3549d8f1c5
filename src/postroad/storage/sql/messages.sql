-- name: insert
-- Accepted messages.
INSERT INTO messages (id, account_id, credential_id, source, sender, sender_key, subject, status, billing_status,
    recipient_count, credits_reserved, size, request_id, response, created_at, return_path_domain, metadata,
    send_at, expires_at, is_test)
VALUES ($1, $2, $3, $4, $5, $6, $7, 'queued', 'reserved', $8, $9, $10, $11, $12, $13, $14, $15, $16, $17,
    $18);

-- name: insert_bodies
-- Their bodies.
INSERT INTO bodies (account_id, message_id, mime) VALUES ($1, $2, $3);

-- name: insert_tags
-- Their tags.
INSERT INTO message_tags (account_id, tag, message_id) VALUES ($1, $2, $3);

-- name: insert_metadata
-- Their metadata.
INSERT INTO message_metadata (account_id, entry, message_id) VALUES ($1, $2, $3);

-- name: by_id
-- One message of an account.
SELECT id, account_id, source, sender, subject, status, billing_status, recipient_count, credits_reserved, size,
    request_id, created_at, send_at, expires_at, is_test, metadata, ended_at
FROM messages WHERE id = $2 AND account_id = $1;

-- name: response
-- The body of the 202 response to a message, and its request id.
SELECT response, request_id FROM messages WHERE id = $2 AND account_id = $1;

-- name: body
-- The MIME of one message of an account.
SELECT mime FROM bodies WHERE message_id = $2 AND account_id = $1;

-- name: finish
-- Messages whose recipients are all final.
UPDATE messages SET status = $3, billing_status = $4, ended_at = $5 WHERE account_id = $1 AND id = $2;

-- name: reschedule
-- The times of a message that is sent later.
UPDATE messages SET send_at = $3, expires_at = $4 WHERE account_id = $1 AND id = $2;

-- name: replace_body
-- The MIME of a message whose date has changed.
UPDATE bodies SET mime = $3 WHERE account_id = $1 AND message_id = $2;

-- name: outgoing
-- What is sent of a message, and how many recipients it has. A join would take SQLite twice as long.
SELECT account_id, id, sender_key, recipient_count,
    (SELECT mime FROM bodies WHERE bodies.account_id = $1 AND bodies.message_id = $2), return_path_domain
FROM messages WHERE account_id = $1 AND id = $2;

-- name: event_details
-- Recipients and their messages, as events contain them. A join would take SQLite twice as long.
SELECT account_id, id, $3, (SELECT email FROM recipients
    WHERE recipients.account_id = $1 AND recipients.message_id = $2 AND recipients.id = $3), sender_key, subject,
    return_path_domain, is_test
FROM messages WHERE account_id = $1 AND id = $2;

-- name: event_context
-- What events of version 2 contain besides.
SELECT account_id, id, $3, (SELECT attempt_count FROM recipients
    WHERE recipients.account_id = $1 AND recipients.message_id = $2 AND recipients.id = $3), sender, metadata, send_at,
    source
FROM messages WHERE account_id = $1 AND id = $2;

-- name: heads
-- The beginning of the MIME of messages: more than the header of almost any.
SELECT account_id, message_id, substr(mime, 1, 32768) FROM bodies WHERE message_id = $2 AND account_id = $1;

-- name: tags
-- The tags of messages.
SELECT account_id, message_id, tag FROM message_tags WHERE account_id = $1 AND message_id = $2;

-- name: metadata
-- The metadata of messages that have some.
SELECT id, metadata FROM messages WHERE account_id = $1 AND id = $2 AND metadata IS NOT NULL;

-- name: account_of
-- The account of a message. The key begins with the account, so this is one index lookup for each account.
SELECT accounts.id FROM accounts CROSS JOIN messages
WHERE messages.account_id = accounts.id AND messages.id = $1 LIMIT 1;

-- name: uncharged
-- Those of some messages that cost no credits, and whether they are test messages, which never do.
SELECT account_id, id, is_test FROM messages WHERE account_id = $1 AND id = $2 AND credits_reserved = 0;

-- name: test_bytes_by_account
-- The bytes of the test messages of each account, with $1 for each recipient, from an index of test messages alone.
SELECT account_id, SUM(size + $1 * recipient_count) FROM messages INDEXED BY messages_test_ended WHERE is_test = 1
GROUP BY account_id;
