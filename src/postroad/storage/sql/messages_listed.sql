-- Parts of an account's list of messages. Each way to walk through it has an index of its own, in the order of the ids, and
-- two queries: `floor` finds how far back so many entries reach, and reads the index alone; `page` reads the messages from
-- there on that pass the other filters. NULL filters nothing, and so does an empty word. What a message has of recipients
-- and tags is counted: PostgreSQL would answer EXISTS by reading all that the account ever sent to them. `replace` is how
-- both engines say "contains" alike, and without patterns: a subject without the word is another one.

-- name: floor_by_time
-- Of all messages: the id of the entry that stands so many behind the newest.
SELECT id FROM messages WHERE account_id = $1 AND id >= $2 AND id < $3
ORDER BY id DESC LIMIT 1 OFFSET $4;

-- name: page_by_time
-- Of all messages: newest first, between two ids.
SELECT messages.id, messages.account_id, messages.source, messages.sender, messages.subject, messages.status,
    messages.billing_status, messages.recipient_count, messages.credits_reserved, messages.size, messages.request_id,
    messages.created_at
FROM messages
WHERE messages.account_id = $1 AND id >= $2 AND id < $3
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
ORDER BY id DESC LIMIT $4;

-- name: floor_by_sender
-- Of one sender: the id of the entry that stands so many behind the newest.
SELECT id FROM messages WHERE account_id = $1 AND id >= $2 AND id < $3 AND sender_key = $5
ORDER BY id DESC LIMIT 1 OFFSET $4;

-- name: page_by_sender
-- Of one sender: newest first, between two ids. Joined, or SQLite walks by time.
SELECT messages.id, messages.account_id, messages.source, messages.sender, messages.subject, messages.status,
    messages.billing_status, messages.recipient_count, messages.credits_reserved, messages.size, messages.request_id,
    messages.created_at
FROM messages AS walked JOIN messages ON messages.account_id = walked.account_id AND messages.id = walked.id
WHERE walked.account_id = $1 AND walked.id >= $2 AND walked.id < $3 AND walked.sender_key = $7
    AND (CAST($5 AS TEXT) IS NULL OR messages.status = $5)
    AND (CAST($6 AS TEXT) IS NULL OR messages.source = $6)
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
ORDER BY walked.id DESC LIMIT $4;

-- name: floor_by_status
-- Of those that ended in one way: the id of the entry that stands so many behind the newest.
SELECT id FROM messages WHERE account_id = $1 AND id >= $2 AND id < $3 AND status = $5 AND status <> 'queued'
ORDER BY id DESC LIMIT 1 OFFSET $4;

-- name: page_by_status
-- Of those that ended in one way: newest first, between two ids.
SELECT messages.id, messages.account_id, messages.source, messages.sender, messages.subject, messages.status,
    messages.billing_status, messages.recipient_count, messages.credits_reserved, messages.size, messages.request_id,
    messages.created_at
FROM messages
WHERE messages.account_id = $1 AND id >= $2 AND id < $3 AND status = $5 AND status <> 'queued'
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
ORDER BY id DESC LIMIT $4;

-- name: floor_by_queue
-- Of those that stand in the queue: the id of the entry that stands so many behind the newest.
SELECT message_id FROM queue WHERE account_id = $1 AND message_id >= $2 AND message_id < $3
ORDER BY message_id DESC LIMIT 1 OFFSET $4;

-- name: page_by_queue
-- Of those that stand in the queue: newest first, between two ids. A message stands there for each recipient.
SELECT messages.id, messages.account_id, messages.source, messages.sender, messages.subject, messages.status,
    messages.billing_status, messages.recipient_count, messages.credits_reserved, messages.size, messages.request_id,
    messages.created_at
FROM queue JOIN messages ON messages.account_id = queue.account_id AND messages.id = queue.message_id
WHERE queue.account_id = $1 AND queue.message_id >= $2 AND queue.message_id < $3
    AND recipient_id = (SELECT max(recipient_id) FROM queue AS beside
        WHERE beside.account_id = $1 AND beside.message_id = queue.message_id)
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
ORDER BY queue.message_id DESC LIMIT $4;

-- name: floor_by_tag
-- Of those with one tag: the id of the entry that stands so many behind the newest.
SELECT message_id FROM message_tags WHERE account_id = $1 AND message_id >= $2 AND message_id < $3 AND tag = $5
ORDER BY message_id DESC LIMIT 1 OFFSET $4;

-- name: page_by_tag
-- Of those with one tag: newest first, between two ids.
SELECT messages.id, messages.account_id, messages.source, messages.sender, messages.subject, messages.status,
    messages.billing_status, messages.recipient_count, messages.credits_reserved, messages.size, messages.request_id,
    messages.created_at
FROM message_tags JOIN messages ON messages.account_id = message_tags.account_id AND messages.id = message_tags.message_id
WHERE message_tags.account_id = $1 AND message_tags.message_id >= $2 AND message_tags.message_id < $3
    AND message_tags.tag = $9
    AND (CAST($5 AS TEXT) IS NULL OR messages.status = $5)
    AND (CAST($6 AS TEXT) IS NULL OR messages.source = $6)
    AND (CAST($7 AS TEXT) IS NULL OR messages.sender_key = $7)
    AND (CAST($8 AS TEXT) IS NULL OR (
        SELECT count(*) FROM recipients AS reached
        WHERE reached.account_id = $1 AND reached.email_key = $8 AND reached.message_id = messages.id) > 0)
    AND ($10 = '' OR replace(lower(messages.subject), $10, '') <> lower(messages.subject))
    AND ($11 = '' OR replace(lower(messages.subject), $11, '') <> lower(messages.subject))
    AND ($12 = '' OR replace(lower(messages.subject), $12, '') <> lower(messages.subject))
    AND ($13 = '' OR replace(lower(messages.subject), $13, '') <> lower(messages.subject))
    AND ($14 = '' OR replace(lower(messages.subject), $14, '') <> lower(messages.subject))
ORDER BY message_tags.message_id DESC LIMIT $4;

-- name: floor_by_recipient
-- Of those to one recipient: the id of the entry that stands so many behind the newest.
SELECT message_id FROM recipients WHERE account_id = $1 AND message_id >= $2 AND message_id < $3 AND email_key = $5
ORDER BY message_id DESC LIMIT 1 OFFSET $4;

-- name: page_by_recipient
-- Of those to one recipient: newest first, between two ids.
SELECT messages.id, messages.account_id, messages.source, messages.sender, messages.subject, messages.status,
    messages.billing_status, messages.recipient_count, messages.credits_reserved, messages.size, messages.request_id,
    messages.created_at
FROM recipients JOIN messages ON messages.account_id = recipients.account_id AND messages.id = recipients.message_id
WHERE recipients.account_id = $1 AND recipients.message_id >= $2 AND recipients.message_id < $3
    AND recipients.email_key = $8
    AND (CAST($5 AS TEXT) IS NULL OR messages.status = $5)
    AND (CAST($6 AS TEXT) IS NULL OR messages.source = $6)
    AND (CAST($7 AS TEXT) IS NULL OR messages.sender_key = $7)
    AND (CAST($9 AS TEXT) IS NULL OR (
        SELECT count(*) FROM message_tags AS given
        WHERE given.account_id = $1 AND given.tag = $9 AND given.message_id = messages.id) > 0)
    AND ($10 = '' OR replace(lower(messages.subject), $10, '') <> lower(messages.subject))
    AND ($11 = '' OR replace(lower(messages.subject), $11, '') <> lower(messages.subject))
    AND ($12 = '' OR replace(lower(messages.subject), $12, '') <> lower(messages.subject))
    AND ($13 = '' OR replace(lower(messages.subject), $13, '') <> lower(messages.subject))
    AND ($14 = '' OR replace(lower(messages.subject), $14, '') <> lower(messages.subject))
ORDER BY recipients.message_id DESC LIMIT $4;
