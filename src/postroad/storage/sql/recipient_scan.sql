-- name: floor_by_time
-- The id of the last one of so many messages, from the newest on.
SELECT id FROM messages WHERE account_id = $1 AND id >= $2 AND id < $3 ORDER BY id DESC LIMIT 1 OFFSET $4;

-- name: floor_by_tag
-- The same of messages with a tag.
SELECT message_id FROM message_tags WHERE account_id = $1 AND message_id >= $2 AND message_id < $3 AND tag = $5
ORDER BY message_id DESC LIMIT 1 OFFSET $4;

-- name: by_time
-- The recipients of messages, newest first, whose sender's address ends so.
SELECT messages.id, messages.created_at, messages.send_at, recipients.status, recipients.attempt_count,
    recipients.delivered_at,
    (SELECT provider_queue FROM attempts
        WHERE attempts.account_id = $1 AND attempts.message_id = messages.id
            AND attempts.recipient_id = recipients.id
        ORDER BY attempts.started_at DESC LIMIT 1)
FROM messages CROSS JOIN recipients
WHERE recipients.account_id = $1 AND recipients.message_id = messages.id AND messages.is_test = 0
    AND substr(messages.sender_key, length(messages.sender_key) - length(CAST($5 AS TEXT)) + 1) = $5
    AND messages.account_id = $1 AND messages.id >= $2 AND messages.id < $3
ORDER BY messages.id DESC LIMIT $4;

-- name: by_tag
-- The same of messages with a tag. A cross join, or SQLite reads all messages.
SELECT messages.id, messages.created_at, messages.send_at, recipients.status, recipients.attempt_count,
    recipients.delivered_at,
    (SELECT provider_queue FROM attempts
        WHERE attempts.account_id = $1 AND attempts.message_id = messages.id
            AND attempts.recipient_id = recipients.id
        ORDER BY attempts.started_at DESC LIMIT 1)
FROM message_tags CROSS JOIN messages CROSS JOIN recipients
WHERE recipients.account_id = $1 AND recipients.message_id = messages.id AND messages.is_test = 0
    AND substr(messages.sender_key, length(messages.sender_key) - length(CAST($5 AS TEXT)) + 1) = $5
    AND messages.account_id = $1 AND messages.id = message_tags.message_id
    AND message_tags.account_id = $1 AND message_tags.tag = $6
    AND message_tags.message_id >= $2 AND message_tags.message_id < $3
ORDER BY message_tags.message_id DESC LIMIT $4;
