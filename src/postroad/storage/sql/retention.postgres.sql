-- name: bodies_over
-- Messages that ended before a time and have a body, up to a limit; those that another host is deleting are skipped.
SELECT account_id, id, size FROM messages
WHERE ended_at > $3 AND ended_at <= $1 AND has_body = 1 AND status <> 'queued' ORDER BY ended_at LIMIT $2
FOR UPDATE SKIP LOCKED;

-- name: remove_bodies
-- Their bodies.
DELETE FROM bodies USING unnest($1::text[], $2::text[]) AS gone (account_id, message_id)
WHERE bodies.account_id = gone.account_id AND bodies.message_id = gone.message_id;

-- name: note_bodies
-- Mark messages as without a body.
UPDATE messages SET has_body = 0 FROM unnest($1::text[], $2::text[]) AS gone (account_id, id)
WHERE messages.account_id = gone.account_id AND messages.id = gone.id;

-- name: messages_over
-- Messages without a body that ended before a time, up to a limit; those that another host is deleting are skipped.
SELECT account_id, id, recipient_count FROM messages
WHERE ended_at > $3 AND ended_at <= $1 AND has_body = 0 AND status <> 'queued' ORDER BY ended_at LIMIT $2
FOR UPDATE SKIP LOCKED;

-- name: remove_messages
-- Messages.
DELETE FROM messages USING unnest($1::text[], $2::text[]) AS gone (account_id, id)
WHERE messages.account_id = gone.account_id AND messages.id = gone.id;

-- name: remove_tags
-- Their tags.
DELETE FROM message_tags USING unnest($1::text[], $2::text[]) AS gone (account_id, message_id)
WHERE message_tags.account_id = gone.account_id AND message_tags.message_id = gone.message_id;

-- name: remove_metadata
-- Their metadata.
DELETE FROM message_metadata USING unnest($1::text[], $2::text[]) AS gone (account_id, message_id)
WHERE message_metadata.account_id = gone.account_id AND message_metadata.message_id = gone.message_id;

-- name: remove_resends
-- As which messages they were sent again.
DELETE FROM resends USING unnest($1::text[], $2::text[]) AS gone (account_id, message_id)
WHERE resends.account_id = gone.account_id AND resends.resend_of = gone.message_id;

-- name: remove_recipients
-- Their recipients.
DELETE FROM recipients USING unnest($1::text[], $2::text[]) AS gone (account_id, message_id)
WHERE recipients.account_id = gone.account_id AND recipients.message_id = gone.message_id;

-- name: remove_attempts
-- Their attempts.
DELETE FROM attempts USING unnest($1::text[], $2::text[]) AS gone (account_id, message_id)
WHERE attempts.account_id = gone.account_id AND attempts.message_id = gone.message_id;

-- name: remove_conversations
-- What was said in their attempts.
DELETE FROM attempt_conversations USING unnest($1::text[], $2::text[]) AS gone (account_id, message_id)
WHERE attempt_conversations.account_id = gone.account_id AND attempt_conversations.message_id = gone.message_id;

-- name: remove_async_bounces
-- Their asynchronous bounces.
DELETE FROM async_bounces USING unnest($1::text[], $2::text[]) AS gone (account_id, message_id)
WHERE async_bounces.account_id = gone.account_id AND async_bounces.message_id = gone.message_id;

-- name: test_messages_over
-- Test messages that ended before a time, with what deleting them costs, up to a limit; those that another host is
-- deleting are skipped.
SELECT account_id, id, CASE WHEN has_body = 1 THEN size ELSE 0 END, recipient_count FROM messages
WHERE is_test = 1 AND ended_at <= $1 AND status <> 'queued' ORDER BY ended_at LIMIT $2
FOR UPDATE SKIP LOCKED;

-- name: received_bodies_over
-- Received mail from before a time that has content, up to a limit; what another host is deleting is skipped.
SELECT account_id, id, size FROM received_messages WHERE has_body = 1 AND received_at < $1 ORDER BY received_at LIMIT $2
FOR UPDATE SKIP LOCKED;

-- name: remove_received_bodies
-- Their content.
DELETE FROM received_bodies USING unnest($1::text[], $2::text[]) AS gone (account_id, message_id)
WHERE received_bodies.account_id = gone.account_id AND received_bodies.message_id = gone.message_id;

-- name: note_received_bodies
-- Mark received mail as without content.
UPDATE received_messages SET has_body = 0 FROM unnest($1::text[], $2::text[]) AS gone (account_id, id)
WHERE received_messages.account_id = gone.account_id AND received_messages.id = gone.id;
