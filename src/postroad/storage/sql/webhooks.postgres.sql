-- name: enabled_of
-- The endpoints of accounts, those that are enabled.
SELECT id, webhooks.account_id, url, events, enabled, secret_hint, pinged_at, created_at, updated_at
FROM unnest($1::text[]) AS wanted (account_id)
JOIN webhooks ON webhooks.account_id = wanted.account_id
WHERE removed_at IS NULL AND enabled = 1;

-- name: enabled
-- Endpoints, those that are enabled.
SELECT webhooks.id, account_id, url, events, enabled, secret_hint, pinged_at, created_at, updated_at
FROM unnest($1::text[]) AS wanted (id) JOIN webhooks ON webhooks.id = wanted.id
WHERE removed_at IS NULL AND enabled = 1;

-- name: secrets
-- The secrets of an endpoint that sign now.
SELECT webhook_secrets.account_id, webhook_id, version, secret, webhook_secrets.created_at, expires_at
FROM unnest($1::text[], $2::bigint[]) AS wanted (id, now)
JOIN webhooks ON webhooks.id = wanted.id
JOIN webhook_secrets ON webhook_secrets.account_id = webhooks.account_id AND webhook_secrets.webhook_id = webhooks.id
WHERE expires_at IS NULL OR expires_at > wanted.now;
