-- Pages of an account's list of messages. Each index that a list can be read by has two queries: `floor` finds the id of
-- the entry that is $4 behind the newest, and reads the index alone; `page` reads the messages from there on that pass all
-- filters, newest first. $2 and $3 are the bounds of the ids.
-- In filters, NULL and an empty word let everything pass. Recipients, tags and metadata are counted, because PostgreSQL would answer
-- EXISTS by reading everything that the account ever sent to them. `replace` is how both engines say "contains" without
-- patterns: a subject that contains the word changes.

-- part: columns
SELECT messages.id, messages.account_id, messages.source, messages.sender, messages.subject, messages.status,
    messages.billing_status, messages.recipient_count, messages.credits_reserved, messages.size, messages.request_id,
    messages.created_at, messages.send_at, messages.expires_at, messages.is_test

-- part: filters
    AND (CAST($5 AS TEXT) IS NULL OR messages.status = $5)
    AND (CAST($6 AS TEXT) IS NULL OR messages.source = $6)
    AND (CAST($7 AS TEXT) IS NULL OR messages.sender_key = $7)
    AND (CAST($8 AS TEXT) IS NULL OR (
        SELECT count(*) FROM recipients AS reached
        WHERE reached.account_id = $1 AND reached.email_key = $8 AND reached.message_id = messages.id) > 0)
    AND (CAST($9 AS TEXT) IS NULL OR (
        SELECT count(*) FROM message_tags AS given
        WHERE given.account_id = $1 AND given.tag = $9 AND given.message_id = messages.id) > 0)
    AND ($10 = '' OR replace(lower(messages.subject), $10, '') <> lower(messages.subject))
    AND ($11 = '' OR replace(lower(messages.subject), $11, '') <> lower(messages.subject))
    AND ($12 = '' OR replace(lower(messages.subject), $12, '') <> lower(messages.subject))
    AND ($13 = '' OR replace(lower(messages.subject), $13, '') <> lower(messages.subject))
    AND ($14 = '' OR replace(lower(messages.subject), $14, '') <> lower(messages.subject))
    AND (CAST($15 AS TEXT) IS NULL OR (
        SELECT count(*) FROM message_metadata AS stored
        WHERE stored.account_id = $1 AND stored.entry = $15 AND stored.message_id = messages.id) > 0)
    AND (CAST($16 AS BIGINT) IS NULL OR messages.is_test = $16)

-- name: floor_by_time
-- All messages: how far back the newest entries reach.
SELECT id FROM messages WHERE account_id = $1 AND id >= $2 AND id < $3
ORDER BY id DESC LIMIT 1 OFFSET $4;

-- name: page_by_time
-- All messages.
-- include: columns
FROM messages
WHERE messages.account_id = $1 AND id >= $2 AND id < $3
    -- include: filters
ORDER BY id DESC LIMIT $4;

-- name: floor_by_test
-- Test messages: how far back the newest entries reach.
SELECT id FROM messages WHERE account_id = $1 AND id >= $2 AND id < $3 AND is_test = 1
ORDER BY id DESC LIMIT 1 OFFSET $4;

-- name: page_by_test
-- Test messages.
-- include: columns
FROM messages
WHERE messages.account_id = $1 AND id >= $2 AND id < $3 AND is_test = 1
    -- include: filters
ORDER BY id DESC LIMIT $4;

-- name: floor_by_sender
-- Messages of one sender: how far back the newest entries reach.
SELECT id FROM messages WHERE account_id = $1 AND id >= $2 AND id < $3 AND sender_key = $5
ORDER BY id DESC LIMIT 1 OFFSET $4;

-- name: page_by_sender
-- Messages of one sender. Joined, or SQLite reads by time.
-- include: columns
FROM messages AS scanned CROSS JOIN messages
WHERE messages.account_id = scanned.account_id AND messages.id = scanned.id
    AND scanned.account_id = $1 AND scanned.id >= $2 AND scanned.id < $3 AND scanned.sender_key = $7
    -- include: filters
ORDER BY scanned.id DESC LIMIT $4;

-- name: floor_by_status
-- Messages of one final status: how far back the newest entries reach.
SELECT id FROM messages WHERE account_id = $1 AND id >= $2 AND id < $3 AND status = $5 AND status <> 'queued'
ORDER BY id DESC LIMIT 1 OFFSET $4;

-- name: page_by_status
-- Messages of one final status.
-- include: columns
FROM messages
WHERE messages.account_id = $1 AND id >= $2 AND id < $3 AND status = $5 AND status <> 'queued'
    -- include: filters
ORDER BY id DESC LIMIT $4;

-- name: floor_by_queue
-- Queued messages: how far back the newest entries reach.
SELECT message_id FROM queue WHERE account_id = $1 AND message_id >= $2 AND message_id < $3
ORDER BY message_id DESC LIMIT 1 OFFSET $4;

-- name: page_by_queue
-- Queued messages. The queue has a row for each recipient of a message: the last one is taken.
-- include: columns
FROM queue JOIN messages ON messages.account_id = queue.account_id AND messages.id = queue.message_id
WHERE queue.account_id = $1 AND queue.message_id >= $2 AND queue.message_id < $3
    AND recipient_id = (SELECT max(recipient_id) FROM queue AS beside
        WHERE beside.account_id = $1 AND beside.message_id = queue.message_id)
    -- include: filters
ORDER BY queue.message_id DESC LIMIT $4;

-- name: floor_by_tag
-- Messages with one tag: how far back the newest entries reach.
SELECT message_id FROM message_tags WHERE account_id = $1 AND message_id >= $2 AND message_id < $3 AND tag = $5
ORDER BY message_id DESC LIMIT 1 OFFSET $4;

-- name: page_by_tag
-- Messages with one tag. A cross join, or SQLite reads by time.
-- include: columns
FROM message_tags CROSS JOIN messages
WHERE messages.account_id = message_tags.account_id AND messages.id = message_tags.message_id
    AND message_tags.account_id = $1 AND message_tags.message_id >= $2 AND message_tags.message_id < $3
    AND message_tags.tag = $9
    -- include: filters
ORDER BY message_tags.message_id DESC LIMIT $4;

-- name: floor_by_metadata
-- Messages with one value of a metadata key: how far back the newest entries reach.
SELECT message_id FROM message_metadata WHERE account_id = $1 AND message_id >= $2 AND message_id < $3 AND entry = $5
ORDER BY message_id DESC LIMIT 1 OFFSET $4;

-- name: page_by_metadata
-- Messages with one value of a metadata key. A cross join, or SQLite reads by time.
-- include: columns
FROM message_metadata CROSS JOIN messages
WHERE messages.account_id = message_metadata.account_id AND messages.id = message_metadata.message_id
    AND message_metadata.account_id = $1 AND message_metadata.message_id >= $2 AND message_metadata.message_id < $3
    AND message_metadata.entry = $15
    -- include: filters
ORDER BY message_metadata.message_id DESC LIMIT $4;

-- name: floor_by_recipient
-- Messages to one recipient: how far back the newest entries reach.
SELECT message_id FROM recipients WHERE account_id = $1 AND message_id >= $2 AND message_id < $3 AND email_key = $5
ORDER BY message_id DESC LIMIT 1 OFFSET $4;

-- name: page_by_recipient
-- Messages to one recipient.
-- include: columns
FROM recipients CROSS JOIN messages
WHERE messages.account_id = recipients.account_id AND messages.id = recipients.message_id
    AND recipients.account_id = $1 AND recipients.message_id >= $2 AND recipients.message_id < $3
    AND recipients.email_key = $8
    -- include: filters
ORDER BY recipients.message_id DESC LIMIT $4;
