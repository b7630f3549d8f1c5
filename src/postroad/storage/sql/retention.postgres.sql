-- name: bodies_over
-- Messages that ended long ago and still have their body, some at a time; what another host removes is passed over.
SELECT account_id, id, size FROM messages
WHERE ended_at <= $1 AND has_body = 1 AND status <> 'queued' ORDER BY ended_at LIMIT $2
FOR UPDATE SKIP LOCKED;

-- name: remove_bodies
-- The content of messages.
DELETE FROM bodies USING unnest($1::text[], $2::text[]) AS gone (account_id, message_id)
WHERE bodies.account_id = gone.account_id AND bodies.message_id = gone.message_id;

-- name: note_bodies
-- That it is gone.
UPDATE messages SET has_body = 0 FROM unnest($1::text[], $2::text[]) AS gone (account_id, id)
WHERE messages.account_id = gone.account_id AND messages.id = gone.id;

-- name: messages_over
-- Messages without a body that ended long ago, some at a time; what another host removes is passed over.
SELECT account_id, id, recipient_count FROM messages
WHERE ended_at <= $1 AND has_body = 0 AND status <> 'queued' ORDER BY ended_at LIMIT $2
FOR UPDATE SKIP LOCKED;

-- name: remove_messages
-- Messages.
DELETE FROM messages USING unnest($1::text[], $2::text[]) AS gone (account_id, id)
WHERE messages.account_id = gone.account_id AND messages.id = gone.id;

-- name: remove_tags
-- Their tags.
DELETE FROM message_tags USING unnest($1::text[], $2::text[]) AS gone (account_id, message_id)
WHERE message_tags.account_id = gone.account_id AND message_tags.message_id = gone.message_id;

-- name: remove_recipients
-- Their recipients.
DELETE FROM recipients USING unnest($1::text[], $2::text[]) AS gone (account_id, message_id)
WHERE recipients.account_id = gone.account_id AND recipients.message_id = gone.message_id;

-- name: remove_attempts
-- What was tried.
DELETE FROM attempts USING unnest($1::text[], $2::text[]) AS gone (account_id, message_id)
WHERE attempts.account_id = gone.account_id AND attempts.message_id = gone.message_id;

-- name: remove_late_bounces
-- What was reported later.
DELETE FROM late_bounces USING unnest($1::text[], $2::text[]) AS gone (account_id, message_id)
WHERE late_bounces.account_id = gone.account_id AND late_bounces.message_id = gone.message_id;
