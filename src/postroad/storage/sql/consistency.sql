-- name: hold
-- Let nothing be removed that the snapshot of the transaction has. A snapshot of SQLite has all that was there.
SELECT 1;

-- name: balances
-- Accounts whose ledger does not sum to their balances. That of a removed account is being deleted.
SELECT accounts.id, accounts.available, accounts.reserved, COALESCE(SUM(ledger.available), 0), COALESCE(SUM(ledger.reserved), 0)
FROM accounts LEFT JOIN ledger ON ledger.account_id = accounts.id
WHERE accounts.removed_at IS NULL
GROUP BY accounts.id, accounts.available, accounts.reserved
HAVING accounts.available <> COALESCE(SUM(ledger.available), 0) OR accounts.reserved <> COALESCE(SUM(ledger.reserved), 0)
ORDER BY accounts.id LIMIT $1;

-- name: reservations
-- Accounts whose reserved credits do not match their recipients that are not final. Mail that costs nothing has none.
SELECT accounts.id, accounts.reserved, COUNT(recipients.id)
FROM accounts LEFT JOIN (
    SELECT recipients.id, recipients.account_id FROM recipients JOIN messages
        ON messages.account_id = recipients.account_id AND messages.id = recipients.message_id
    WHERE recipients.billing_status = 'reserved' AND messages.credits_reserved > 0
) AS recipients ON recipients.account_id = accounts.id
GROUP BY accounts.id, accounts.reserved
HAVING accounts.reserved <> COUNT(recipients.id)
ORDER BY accounts.id LIMIT $1;

-- name: recipient_counts
-- Messages whose number of recipients has changed.
SELECT messages.id, messages.recipient_count, COUNT(recipients.id)
FROM messages LEFT JOIN recipients
    ON recipients.account_id = messages.account_id AND recipients.message_id = messages.id
GROUP BY messages.id, messages.recipient_count
HAVING messages.recipient_count <> COUNT(recipients.id)
ORDER BY messages.id LIMIT $1;

-- name: message_reservations
-- Messages whose reservation in the ledger is missing, duplicated or of another amount.
-- Summed before the join: the ledger has no index by message, and nothing else needs one.
SELECT messages.id, messages.credits_reserved, COALESCE(entries.reserved, 0)
FROM messages LEFT JOIN (
    SELECT message_id, SUM(reserved) AS reserved FROM ledger WHERE kind = 'reserve' GROUP BY message_id
) AS entries ON entries.message_id = messages.id
WHERE messages.credits_reserved <> COALESCE(entries.reserved, 0)
ORDER BY messages.id LIMIT $1;

-- name: message_credits
-- Messages whose ledger entries do not sum to the reserved and released credits of their recipients.
SELECT messages.id, COALESCE(moved.reserved, 0), COALESCE(moved.available, 0), COALESCE(held.reserved, 0),
    COALESCE(held.released, 0) - messages.credits_reserved
FROM messages
LEFT JOIN (SELECT message_id, SUM(available) AS available, SUM(reserved) AS reserved
    FROM ledger WHERE message_id IS NOT NULL GROUP BY message_id) AS moved ON moved.message_id = messages.id
LEFT JOIN (SELECT message_id, SUM(CASE WHEN billing_status = 'reserved' THEN 1 ELSE 0 END) AS reserved,
        SUM(CASE WHEN billing_status = 'released' THEN 1 ELSE 0 END) AS released
    FROM recipients GROUP BY message_id) AS held ON held.message_id = messages.id AND messages.credits_reserved > 0
WHERE COALESCE(moved.reserved, 0) <> COALESCE(held.reserved, 0)
    OR COALESCE(moved.available, 0) <> COALESCE(held.released, 0) - messages.credits_reserved
ORDER BY messages.id LIMIT $1;

-- name: missing_bodies
-- Messages whose body is missing: queued ones could not be sent.
SELECT messages.id, messages.status FROM messages LEFT JOIN bodies
    ON bodies.account_id = messages.account_id AND bodies.message_id = messages.id
WHERE (messages.status = 'queued' OR messages.has_body = 1) AND bodies.message_id IS NULL ORDER BY messages.id LIMIT $1;

-- name: body_sizes
-- Messages whose stored body has another size than the accepted one.
SELECT messages.id, messages.size, LENGTH(bodies.mime)
FROM messages JOIN bodies ON bodies.account_id = messages.account_id AND bodies.message_id = messages.id
WHERE messages.size <> LENGTH(bodies.mime) ORDER BY messages.id LIMIT $1;

-- name: orphan_rows
-- Rows whose message, recipient, account or other parent row is missing.
SELECT kind, id FROM (
    SELECT 'recipient' AS kind, recipients.id AS id FROM recipients
        LEFT JOIN messages ON messages.id = recipients.message_id AND messages.account_id = recipients.account_id
        WHERE messages.id IS NULL
    UNION ALL
    SELECT 'body', bodies.message_id FROM bodies
        LEFT JOIN messages ON messages.id = bodies.message_id AND messages.account_id = bodies.account_id
            AND messages.has_body = 1
        WHERE messages.id IS NULL
    UNION ALL
    SELECT 'idempotency key', idempotency_keys.key FROM idempotency_keys
        LEFT JOIN messages
        ON messages.account_id = idempotency_keys.account_id AND messages.id = idempotency_keys.message_id
        WHERE messages.id IS NULL
    UNION ALL
    SELECT 'tag', message_tags.message_id FROM message_tags
        LEFT JOIN messages ON messages.id = message_tags.message_id AND messages.account_id = message_tags.account_id
        WHERE messages.id IS NULL
    UNION ALL
    SELECT 'metadata', message_metadata.message_id FROM message_metadata
        LEFT JOIN messages
        ON messages.id = message_metadata.message_id AND messages.account_id = message_metadata.account_id
        WHERE messages.id IS NULL
    UNION ALL
    SELECT 'queued recipient', queue.recipient_id FROM queue
        LEFT JOIN recipients ON recipients.account_id = queue.account_id
            AND recipients.message_id = queue.message_id AND recipients.id = queue.recipient_id
        WHERE recipients.id IS NULL
    UNION ALL
    SELECT 'attempt', attempts.recipient_id FROM attempts
        LEFT JOIN recipients ON recipients.account_id = attempts.account_id
            AND recipients.message_id = attempts.message_id AND recipients.id = attempts.recipient_id
        WHERE recipients.id IS NULL
    UNION ALL
    SELECT 'asynchronous bounce', async_bounces.recipient_id FROM async_bounces
        LEFT JOIN recipients ON recipients.account_id = async_bounces.account_id
            AND recipients.message_id = async_bounces.message_id AND recipients.id = async_bounces.recipient_id
        WHERE recipients.id IS NULL
    UNION ALL
    SELECT 'message', messages.id FROM messages
        LEFT JOIN accounts ON accounts.id = messages.account_id WHERE accounts.id IS NULL
    UNION ALL
    SELECT 'ledger entry', ledger.id FROM ledger
        LEFT JOIN accounts ON accounts.id = ledger.account_id WHERE accounts.id IS NULL
    UNION ALL
    SELECT 'user', users.id FROM users
        LEFT JOIN accounts ON accounts.id = users.account_id WHERE accounts.id IS NULL
    UNION ALL
    SELECT 'user', users.id FROM users
        JOIN accounts ON accounts.id = users.account_id AND accounts.removed_at IS NULL
        LEFT JOIN logins ON logins.id = users.login_id WHERE logins.id IS NULL AND users.login_id IS NOT NULL
    UNION ALL
    SELECT 'login', logins.id FROM logins
        LEFT JOIN users ON users.login_id = logins.id WHERE users.id IS NULL
    UNION ALL
    SELECT 'authenticator app', totp_secrets.login_id FROM totp_secrets
        LEFT JOIN logins ON logins.id = totp_secrets.login_id WHERE logins.id IS NULL
    UNION ALL
    SELECT 'recovery code', recovery_codes.login_id FROM recovery_codes
        LEFT JOIN logins ON logins.id = recovery_codes.login_id WHERE logins.id IS NULL
    UNION ALL
    SELECT 'passkey', passkeys.id FROM passkeys
        LEFT JOIN logins ON logins.id = passkeys.login_id WHERE logins.id IS NULL
    UNION ALL
    SELECT 'session', sessions.id FROM sessions
        LEFT JOIN users ON users.id = sessions.user_id AND users.login_id = sessions.login_id WHERE users.id IS NULL
    UNION ALL
    SELECT 'single sign-on identity', sso_identities.subject FROM sso_identities
        LEFT JOIN logins ON logins.id = sso_identities.login_id WHERE logins.id IS NULL
    UNION ALL
    SELECT 'single sign-on', sso_connections.account_id FROM sso_connections
        LEFT JOIN accounts ON accounts.id = sso_connections.account_id WHERE accounts.id IS NULL
    UNION ALL
    SELECT 'single sign-on domain', sso_domains.domain FROM sso_domains
        LEFT JOIN sso_connections ON sso_connections.account_id = sso_domains.account_id
        WHERE sso_connections.account_id IS NULL
    UNION ALL
    SELECT 'credential', credentials.id FROM credentials
        LEFT JOIN accounts ON accounts.id = credentials.account_id WHERE accounts.id IS NULL
    UNION ALL
    SELECT 'API key', api_keys.id FROM api_keys
        LEFT JOIN credentials ON credentials.id = api_keys.credential_id AND credentials.account_id = api_keys.account_id
        WHERE credentials.id IS NULL
    UNION ALL
    SELECT 'domain', domains.id FROM domains
        LEFT JOIN accounts ON accounts.id = domains.account_id WHERE accounts.id IS NULL
    UNION ALL
    SELECT 'template', templates.id FROM templates
        LEFT JOIN accounts ON accounts.id = templates.account_id WHERE accounts.id IS NULL
    UNION ALL
    SELECT 'webhook', webhooks.id FROM webhooks
        LEFT JOIN accounts ON accounts.id = webhooks.account_id WHERE accounts.id IS NULL
    UNION ALL
    SELECT 'webhook secret', webhook_secrets.webhook_id FROM webhook_secrets
        LEFT JOIN webhooks ON webhooks.id = webhook_secrets.webhook_id
            AND webhooks.account_id = webhook_secrets.account_id AND webhooks.removed_at IS NULL
        WHERE webhooks.id IS NULL
    UNION ALL
    SELECT 'webhook delivery', webhook_deliveries.id FROM webhook_deliveries
        LEFT JOIN webhooks ON webhooks.id = webhook_deliveries.webhook_id
            AND webhooks.account_id = webhook_deliveries.account_id
        WHERE webhooks.id IS NULL
    UNION ALL
    SELECT 'webhook attempt', webhook_attempts.delivery_id FROM webhook_attempts
        LEFT JOIN webhook_deliveries ON webhook_deliveries.account_id = webhook_attempts.account_id
            AND webhook_deliveries.webhook_id = webhook_attempts.webhook_id
            AND webhook_deliveries.id = webhook_attempts.delivery_id
        WHERE webhook_deliveries.id IS NULL
) AS orphans ORDER BY kind, id LIMIT $1;

-- name: wrong_statuses
-- Messages whose status does not match their recipients.
SELECT messages.id, messages.status,
    SUM(CASE WHEN recipients.status IN ('queued', 'deferred') THEN 1 ELSE 0 END),
    SUM(CASE WHEN recipients.status = 'delivered' THEN 1 ELSE 0 END)
FROM messages JOIN recipients
    ON recipients.account_id = messages.account_id AND recipients.message_id = messages.id
GROUP BY messages.id, messages.status
HAVING messages.status <> CASE
    WHEN SUM(CASE WHEN recipients.status IN ('queued', 'deferred') THEN 1 ELSE 0 END) > 0 THEN 'queued'
    WHEN SUM(CASE WHEN recipients.status = 'delivered' THEN 1 ELSE 0 END) = COUNT(*) THEN 'delivered'
    WHEN SUM(CASE WHEN recipients.status = 'delivered' THEN 1 ELSE 0 END) = 0 THEN 'failed'
    ELSE 'partial' END
ORDER BY messages.id LIMIT $1;

-- name: message_ends
-- Messages that ended without an end time, and would be kept forever, or have one and have not ended.
SELECT id, status FROM messages WHERE (status <> 'queued') <> (ended_at IS NOT NULL) ORDER BY id LIMIT $1;

-- name: unqueued
-- Recipients that are not final and not in the queue.
SELECT recipients.id, recipients.status FROM recipients
LEFT JOIN queue ON queue.account_id = recipients.account_id AND queue.message_id = recipients.message_id
    AND queue.recipient_id = recipients.id
WHERE recipients.status IN ('queued', 'deferred') AND queue.recipient_id IS NULL ORDER BY recipients.id LIMIT $1;

-- name: queued_final
-- Recipients that are final and still in the queue.
SELECT recipients.id, recipients.status FROM queue
JOIN recipients ON recipients.account_id = queue.account_id AND recipients.message_id = queue.message_id
    AND recipients.id = queue.recipient_id
WHERE recipients.status NOT IN ('queued', 'deferred') ORDER BY recipients.id LIMIT $1;

-- name: wrong_billing
-- Recipients whose billing does not match their status: a credit is reserved until the end, and released unless the
-- recipient was delivered or failed.
SELECT recipients.id, recipients.status, recipients.billing_status FROM recipients
WHERE recipients.billing_status <> CASE
    WHEN recipients.status IN ('queued', 'deferred') THEN 'reserved'
    WHEN recipients.status IN ('bounced', 'canceled', 'expired') THEN 'released'
    ELSE 'settled' END
ORDER BY recipients.id LIMIT $1;

-- name: wrong_message_billing
-- Messages whose billing does not match their recipients.
SELECT messages.id, messages.billing_status,
    SUM(CASE WHEN recipients.billing_status = 'reserved' THEN 1 ELSE 0 END),
    SUM(CASE WHEN recipients.billing_status = 'released' THEN 1 ELSE 0 END)
FROM messages JOIN recipients
    ON recipients.account_id = messages.account_id AND recipients.message_id = messages.id
GROUP BY messages.id, messages.billing_status
HAVING messages.billing_status <> CASE
    WHEN SUM(CASE WHEN recipients.billing_status = 'reserved' THEN 1 ELSE 0 END) > 0 THEN 'reserved'
    WHEN SUM(CASE WHEN recipients.billing_status = 'released' THEN 1 ELSE 0 END) = COUNT(*) THEN 'released'
    ELSE 'settled' END
ORDER BY messages.id LIMIT $1;

-- name: access_version
-- The counter that announces revocations to every process has exactly one row.
SELECT COUNT(*) FROM access_version HAVING COUNT(*) <> 1 LIMIT $1;

-- name: webhook_secrets
-- Endpoints without exactly one secret that does not expire: they could not sign, or not with the secret that was shown.
SELECT webhooks.id, COUNT(webhook_secrets.version)
FROM webhooks LEFT JOIN webhook_secrets ON webhook_secrets.account_id = webhooks.account_id
    AND webhook_secrets.webhook_id = webhooks.id AND expires_at IS NULL
WHERE removed_at IS NULL GROUP BY webhooks.id HAVING COUNT(webhook_secrets.version) <> 1
ORDER BY webhooks.id LIMIT $1;

-- name: webhook_overtried
-- Deliveries with more attempts than the schedule has, whatever the settings say.
SELECT id, attempt_count FROM webhook_deliveries
WHERE attempt_count NOT BETWEEN 0 AND 7 ORDER BY id LIMIT $1;

-- name: webhook_attempts
-- Deliveries whose log lacks an attempt that has ended. An attempt under a lease is counted already. The numbers
-- are 1, 2, 3 and so on, so the last one is how many there should be.
SELECT id, attempt_count, ended_attempts, written
FROM (SELECT one.id, one.attempt_count,
        one.attempt_count - CASE WHEN one.state = 'waiting' AND one.worker IS NOT NULL THEN 1 ELSE 0 END AS ended_attempts,
        COUNT(number) AS written, COALESCE(MIN(number), 1) AS first_one, COALESCE(MAX(number), 0) AS last_one
    FROM webhook_deliveries AS one LEFT JOIN webhook_attempts AS log ON log.account_id = one.account_id
        AND log.webhook_id = one.webhook_id AND log.delivery_id = one.id
    GROUP BY one.account_id, one.webhook_id, one.id, one.attempt_count, one.state, one.worker) AS counted
WHERE written <> ended_attempts OR first_one <> 1 OR last_one <> ended_attempts
ORDER BY id LIMIT $1;

-- name: webhook_ends
-- Deliveries that ended without an end time, or have one and have not ended.
SELECT id, state FROM webhook_deliveries
WHERE (state IN ('succeeded', 'failed')) <> (ended_at IS NOT NULL) ORDER BY id LIMIT $1;

-- name: counts
-- How many rows there are.
SELECT (SELECT COUNT(*) FROM accounts), (SELECT COUNT(*) FROM messages), (SELECT COUNT(*) FROM recipients),
    (SELECT COUNT(*) FROM ledger), (SELECT COUNT(*) FROM idempotency_keys);
