-- name: insert
-- An account's endpoint.
INSERT INTO webhooks (id, account_id, url, events, enabled, secret_hint, created_at, updated_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8);

-- name: of_account
-- The account's endpoint.
SELECT id, account_id, url, events, enabled, secret_hint, created_at, updated_at FROM webhooks
WHERE account_id = $1 AND removed_at IS NULL;

-- name: enabled_of
-- The endpoints of accounts, those that are enabled.
SELECT id, account_id, url, events, enabled, secret_hint, created_at, updated_at FROM webhooks
WHERE account_id = $1 AND removed_at IS NULL AND enabled = 1;

-- name: enabled
-- Endpoints, those that are enabled.
SELECT id, account_id, url, events, enabled, secret_hint, created_at, updated_at FROM webhooks
WHERE id = $1 AND removed_at IS NULL AND enabled = 1;

-- name: update
-- What an account may change of its endpoint.
UPDATE webhooks SET url = $2, events = $3, enabled = $4, updated_at = $5 WHERE id = $1;

-- name: mark_pinged
-- Note a ping of an account, unless there was one a moment ago. One from the future says that the clock was set back.
INSERT INTO webhook_pings (account_id, pinged_at) VALUES ($1, $2)
ON CONFLICT (account_id) DO UPDATE SET pinged_at = excluded.pinged_at
WHERE webhook_pings.pinged_at <= $3 OR webhook_pings.pinged_at > excluded.pinged_at;

-- name: pinged_at
-- When an account was last pinged.
SELECT pinged_at FROM webhook_pings WHERE account_id = $1;

-- name: remove
-- Hide an endpoint from everybody but the sweep.
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
-- What people see of the newest secret.
UPDATE webhooks SET secret_hint = $2, updated_at = $3 WHERE id = $1;

-- name: secrets
-- The secrets of an endpoint that sign now.
SELECT webhook_secrets.account_id, webhook_id, version, secret, webhook_secrets.created_at, expires_at
FROM webhooks JOIN webhook_secrets
    ON webhook_secrets.account_id = webhooks.account_id AND webhook_secrets.webhook_id = webhooks.id
WHERE webhooks.id = $1 AND (expires_at IS NULL OR expires_at > $2);

-- name: retire_secret
-- The newest secret gets an end.
UPDATE webhook_secrets SET expires_at = $2
WHERE account_id = (SELECT account_id FROM webhooks WHERE id = $1) AND webhook_id = $1 AND expires_at IS NULL;

-- name: sweep_secrets
-- Secrets that are over.
DELETE FROM webhook_secrets WHERE expires_at <= $1;

-- name: removed
-- Endpoints whose log is to be swept.
SELECT account_id, id FROM webhooks WHERE removed_at IS NOT NULL ORDER BY removed_at LIMIT $1;

-- name: forget
-- An endpoint that was removed and of which nothing is left.
DELETE FROM webhooks WHERE id = $1 AND removed_at IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM webhook_deliveries
    WHERE webhook_deliveries.account_id = webhooks.account_id AND webhook_id = webhooks.id);
