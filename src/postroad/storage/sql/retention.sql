-- name: bodies_over
-- Messages that ended before a time and have a body, up to a limit.
SELECT account_id, id, size FROM messages
WHERE ended_at > $3 AND ended_at <= $1 AND has_body = 1 AND status <> 'queued' ORDER BY ended_at LIMIT $2;

-- name: remove_bodies
-- Their bodies.
DELETE FROM bodies WHERE account_id = $1 AND message_id = $2;

-- name: note_bodies
-- Mark messages as without a body.
UPDATE messages SET has_body = 0 WHERE account_id = $1 AND id = $2;

-- name: messages_over
-- Messages without a body that ended before a time, up to a limit.
SELECT account_id, id, recipient_count FROM messages
WHERE ended_at > $3 AND ended_at <= $1 AND has_body = 0 AND status <> 'queued' ORDER BY ended_at LIMIT $2;

-- name: remove_messages
-- Messages.
DELETE FROM messages WHERE account_id = $1 AND id = $2;

-- name: remove_tags
-- Their tags.
DELETE FROM message_tags WHERE account_id = $1 AND message_id = $2;

-- name: remove_metadata
-- Their metadata.
DELETE FROM message_metadata WHERE account_id = $1 AND message_id = $2;

-- name: remove_resends
-- As which messages they were sent again.
DELETE FROM resends WHERE account_id = $1 AND resend_of = $2;

-- name: remove_recipients
-- Their recipients.
DELETE FROM recipients WHERE account_id = $1 AND message_id = $2;

-- name: remove_attempts
-- Their attempts.
DELETE FROM attempts WHERE account_id = $1 AND message_id = $2;

-- name: remove_conversations
-- What was said in their attempts.
DELETE FROM attempt_conversations WHERE account_id = $1 AND message_id = $2;

-- name: remove_async_bounces
-- Their asynchronous bounces.
DELETE FROM async_bounces WHERE account_id = $1 AND message_id = $2;

-- name: messages_of
-- Messages of one account, with what deleting them costs, up to a limit.
SELECT account_id, id, CASE WHEN has_body = 1 THEN size ELSE 0 END, recipient_count FROM messages
WHERE account_id = $1 ORDER BY id LIMIT $2;

-- name: test_messages_over
-- Test messages that ended before a time, with what deleting them costs, up to a limit.
SELECT account_id, id, CASE WHEN has_body = 1 THEN size ELSE 0 END, recipient_count FROM messages
WHERE is_test = 1 AND ended_at <= $1 AND status <> 'queued' ORDER BY ended_at LIMIT $2;

-- name: received_bodies_over
-- Received mail from before a time that has content, up to a limit.
SELECT account_id, id, size FROM received_messages WHERE has_body = 1 AND received_at < $1 ORDER BY received_at LIMIT $2;

-- name: remove_received_bodies
-- Their content.
DELETE FROM received_bodies WHERE account_id = $1 AND message_id = $2;

-- name: note_received_bodies
-- Mark received mail as without content.
UPDATE received_messages SET has_body = 0 WHERE account_id = $1 AND id = $2;

-- name: remove_received
-- Delete received mail from before a time whose content is deleted.
DELETE FROM received_messages WHERE (account_id, id) IN (
    SELECT account_id, id FROM received_messages WHERE has_body = 0 AND received_at < $1
    ORDER BY received_at LIMIT $2);

-- name: received_bodies_of
-- Received mail of one account that has content, up to a limit.
SELECT account_id, id, size FROM received_messages WHERE account_id = $1 AND has_body = 1 ORDER BY id LIMIT $2;
