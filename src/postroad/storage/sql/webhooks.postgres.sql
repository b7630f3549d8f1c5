-- name: enabled_of
-- The enabled endpoints of accounts. OFFSET makes PostgreSQL look up one account after the other: a plan that was made
-- while there were few endpoints would otherwise keep reading all of them.
SELECT found.* FROM unnest($1::text[]) AS wanted (account_id) CROSS JOIN LATERAL (
    SELECT id, account_id, url, events, enabled, secret_hint, created_at, updated_at, is_first, version, tags,
        sender_domains, mode, standard_signature, description, failing_since, disabled_reason, format, format_events,
        request_headers
    FROM webhooks
    WHERE webhooks.account_id = wanted.account_id AND removed_at IS NULL AND enabled = 1 OFFSET 0) AS found;

-- name: enabled
-- Enabled endpoints; looked up one after the other, as above.
SELECT found.* FROM unnest($1::text[]) AS wanted (id) CROSS JOIN LATERAL (
    SELECT id, account_id, url, events, enabled, secret_hint, created_at, updated_at, is_first, version, tags,
        sender_domains, mode, standard_signature, description, failing_since, disabled_reason, format, format_events,
        request_headers
    FROM webhooks
    WHERE webhooks.id = wanted.id AND removed_at IS NULL AND enabled = 1 LIMIT 1) AS found;

-- name: secrets
-- The secrets of an endpoint that have not expired.
SELECT webhook_secrets.account_id, webhook_id, webhook_secrets.version, secret, webhook_secrets.created_at, expires_at
FROM unnest($1::text[], $2::bigint[]) AS wanted (id, now)
JOIN webhooks ON webhooks.id = wanted.id
JOIN webhook_secrets ON webhook_secrets.account_id = webhooks.account_id
    AND webhook_secrets.webhook_id = webhooks.id
WHERE expires_at IS NULL OR expires_at > wanted.now;

-- name: note_events
-- Note with the account which event types its endpoints name, after one of them has changed.
UPDATE accounts SET subscribed_events = COALESCE(
    (SELECT STRING_AGG(events, ' ') FROM webhooks WHERE account_id = accounts.id AND removed_at IS NULL), '')
WHERE id = (SELECT account_id FROM webhooks WHERE webhooks.id = $1);
