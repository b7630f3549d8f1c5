-- name: moved_since
-- How many entries the ledger has from a cursor on, at most $3, and what they have moved.
SELECT count(*), CAST(COALESCE(SUM(available), 0) AS BIGINT)
FROM (SELECT available FROM ledger WHERE account_id = $1 AND id >= $2 ORDER BY id LIMIT $3) AS newer;

-- name: moved_by_quarter_hour
-- What the newest entries of the ledger before a cursor, at most $3, were and did to the available credits, by quarter
-- of an hour, the newest first.
SELECT created_at / 900000000 AS quarter, count(*),
    CAST(SUM(CASE WHEN kind = 'grant' THEN available ELSE 0 END) AS BIGINT),
    CAST(SUM(CASE WHEN kind = 'reserve' THEN -available ELSE 0 END) AS BIGINT),
    CAST(SUM(CASE WHEN kind = 'release' THEN available ELSE 0 END) AS BIGINT)
FROM (SELECT kind, available, created_at FROM ledger WHERE account_id = $1 AND id < $2 ORDER BY id DESC LIMIT $3)
    AS newest
GROUP BY 1 ORDER BY 1 DESC;

-- name: billing
-- What became of the credits of messages.
SELECT id, billing_status FROM messages WHERE account_id = $1 AND id = $2;

-- name: floor
-- The id of the last one of so many messages, from the newest on.
SELECT id FROM messages WHERE account_id = $1 AND id >= $2 ORDER BY id DESC LIMIT 1 OFFSET $3;

-- name: by_tag
-- Messages and recipients by tag, from a cursor on, the most used first.
SELECT message_tags.tag, count(*), CAST(SUM(messages.recipient_count) AS BIGINT) AS recipients
FROM messages CROSS JOIN message_tags
WHERE messages.account_id = $1 AND messages.id >= $2 AND messages.is_test = 0
    AND message_tags.account_id = $1 AND message_tags.message_id = messages.id
GROUP BY message_tags.tag ORDER BY recipients DESC, message_tags.tag LIMIT $3;
