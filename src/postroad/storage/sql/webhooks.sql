-- part: columns
SELECT id, account_id, url, events, enabled, secret_hint, created_at, updated_at, is_first, version, tags, sender_domains,
    mode, standard_signature, description, failing_since, disabled_reason, format, format_events, request_headers
FROM webhooks

-- name: insert
-- A new endpoint. The wait for the next ping outlives those that were removed.
INSERT INTO webhooks (id, account_id, url, events, enabled, secret_hint, created_at, updated_at, is_first, version, tags,
    sender_domains, mode, standard_signature, description, failing_since, disabled_reason, format, format_events,
    request_headers, pinged_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20,
    (SELECT MAX(pinged_at) FROM webhooks WHERE account_id = $2 AND removed_at IS NOT NULL));

-- name: first_of
-- The first endpoint of an account.
-- include: columns
WHERE account_id = $1 AND is_first = 1 AND removed_at IS NULL;

-- name: of_account
-- All endpoints of an account, the first one first, then the oldest.
-- include: columns
WHERE account_id = $1 AND removed_at IS NULL ORDER BY is_first DESC, id;

-- name: by_id
-- An endpoint of an account.
-- include: columns
WHERE id = $2 AND account_id = $1 AND removed_at IS NULL;

-- name: enabled_of
-- The enabled endpoints of accounts.
-- include: columns
WHERE account_id = $1 AND removed_at IS NULL AND enabled = 1;

-- name: enabled
-- Enabled endpoints.
-- include: columns
WHERE id = $1 AND removed_at IS NULL AND enabled = 1;

-- name: formats
-- The formats of endpoints.
SELECT DISTINCT format FROM webhooks WHERE removed_at IS NULL ORDER BY format;

-- name: update
-- The settings of an endpoint.
UPDATE webhooks SET url = $2, events = $3, enabled = $4, updated_at = $5, version = $6, tags = $7, sender_domains = $8,
    mode = $9, standard_signature = $10, description = $11, failing_since = $12, disabled_reason = $13,
    format_events = $14, request_headers = $15
WHERE id = $1;

-- name: note_events
-- Note with the account which event types its endpoints name, after one of them has changed.
UPDATE accounts SET subscribed_events = COALESCE(
    (SELECT GROUP_CONCAT(events, ' ') FROM webhooks WHERE account_id = accounts.id AND removed_at IS NULL), '')
WHERE id = (SELECT account_id FROM webhooks WHERE webhooks.id = $1);

-- name: mark_pinged
-- Record a ping, unless there was one a moment ago. A time in the future means that the clock was set back.
UPDATE webhooks SET pinged_at = $2
WHERE id = $1 AND (pinged_at IS NULL OR pinged_at <= $3 OR pinged_at > $2);

-- name: pinged_at
-- When an endpoint was last pinged.
SELECT pinged_at FROM webhooks WHERE id = $1 AND pinged_at IS NOT NULL;

-- name: remove
-- Mark an endpoint as removed: only the sweep sees it. Its header fields are secrets, as those that `remove_secrets` deletes.
UPDATE webhooks SET removed_at = $2, request_headers = NULL WHERE id = $1;

-- name: remove_secrets
-- All secrets of an endpoint.
DELETE FROM webhook_secrets
WHERE account_id = (SELECT account_id FROM webhooks WHERE id = $1) AND webhook_id = $1;

-- name: add_secret
-- A new secret.
INSERT INTO webhook_secrets (account_id, webhook_id, version, secret, created_at, expires_at)
VALUES ($1, $2, $3, $4, $5, $6);

-- name: set_hint
-- The hint of the current secret.
UPDATE webhooks SET secret_hint = $2, updated_at = $3 WHERE id = $1;

-- name: secrets
-- The secrets of an endpoint that have not expired.
SELECT webhook_secrets.account_id, webhook_id, webhook_secrets.version, secret, webhook_secrets.created_at, expires_at
FROM webhooks JOIN webhook_secrets
    ON webhook_secrets.account_id = webhooks.account_id AND webhook_secrets.webhook_id = webhooks.id
WHERE webhooks.id = $1 AND (expires_at IS NULL OR expires_at > $2);

-- name: retire_secret
-- Set the expiry of the current secret.
UPDATE webhook_secrets SET expires_at = $2
WHERE account_id = (SELECT account_id FROM webhooks WHERE id = $1) AND webhook_id = $1 AND expires_at IS NULL;

-- name: sweep_secrets
-- Delete expired secrets.
DELETE FROM webhook_secrets WHERE expires_at <= $1;

-- name: removed
-- Removed endpoints whose log may still exist.
SELECT account_id, id FROM webhooks WHERE removed_at IS NOT NULL ORDER BY removed_at LIMIT $1;

-- name: forget
-- Delete a removed endpoint whose log is empty.
DELETE FROM webhooks WHERE id = $1 AND removed_at IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM webhook_deliveries
    WHERE webhook_deliveries.account_id = webhooks.account_id AND webhook_id = webhooks.id);
