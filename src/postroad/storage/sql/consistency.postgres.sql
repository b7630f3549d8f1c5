-- name: hold
-- Let no partition be dropped until the transaction ends: a snapshot does not show what was in it.
LOCK TABLE messages, bodies, recipients, attempts, attempt_conversations, async_bounces, message_tags, message_metadata,
    resends IN ACCESS SHARE MODE;

-- name: missing_bodies
-- Messages whose body is missing: queued ones could not be sent. Bodies that were dropped with a partition are not
-- marked as removed.
SELECT messages.id, messages.status FROM messages LEFT JOIN bodies
    ON bodies.account_id = messages.account_id AND bodies.message_id = messages.id
WHERE (messages.status = 'queued' OR messages.has_body = 1 AND messages.id >= coalesce(
        (SELECT max(substring(pg_get_expr(relpartbound, pg_class.oid) FROM 'TO \(''(.*)''\)') COLLATE "C")
            FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid
            WHERE inhparent = 'bodies'::REGCLASS AND relname LIKE 'bodies\_late\_%'), ''))
    AND bodies.message_id IS NULL ORDER BY messages.id LIMIT $1;
