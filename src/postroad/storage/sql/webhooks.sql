-- name: insert
-- An account's endpoint.
INSERT INTO webhooks (id, account_id, url, events, enabled, secret_hint, created_at, updated_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8);

-- name: of_account
-- The account's endpoint.
SELECT id, account_id, url, events, enabled, secret_hint, created_at, updated_at FROM webhooks
WHERE account_id = $1 AND removed_at IS NULL;

-- name: enabled_of
-- The enabled endpoints of accounts.
SELECT id, account_id, url, events, enabled, secret_hint, created_at, updated_at FROM webhooks
WHERE account_id = $1 AND removed_at IS NULL AND enabled = 1;

-- name: enabled
-- Enabled endpoints.
SELECT id, account_id, url, events, enabled, secret_hint, created_at, updated_at FROM webhooks
WHERE id = $1 AND removed_at IS NULL AND enabled = 1;

-- name: update
-- The settings of an endpoint.
UPDATE webhooks SET url = $2, events = $3, enabled = $4, updated_at = $5 WHERE id = $1;

-- name: mark_pinged
-- Record a ping of an account, unless there was one a moment ago. A time in the future means that the clock was set back.
INSERT INTO webhook_pings (account_id, pinged_at) VALUES ($1, $2)
ON CONFLICT (account_id) DO UPDATE SET pinged_at = excluded.pinged_at
WHERE webhook_pings.pinged_at <= $3 OR webhook_pings.pinged_at > excluded.pinged_at;

-- name: pinged_at
-- When an account was last pinged.
SELECT pinged_at FROM webhook_pings WHERE account_id = $1;

-- name: remove
-- Mark an endpoint as removed: only the sweep sees it.
UPDATE webhooks SET removed_at = $2 WHERE id = $1;

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
SELECT webhook_secrets.account_id, webhook_id, version, secret, webhook_secrets.created_at, expires_at
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
