-- compatible from: 12
-- Webhooks in the format of another service (`resend`, `postmark`): which of its events it gets, and the header fields that
-- its requests have besides (encrypted). Such an endpoint is never the first of its account, so only
-- `additional_webhooks` has them. The format decides the bytes of an event and its signature, and a process of the version
-- before knows none: the view that it reads, `webhook_endpoints`, leaves those endpoints out, so it writes no event for them
-- and delivers none. `all_webhooks` has all.
ALTER TABLE additional_webhooks ADD COLUMN format TEXT COLLATE "C" NOT NULL DEFAULT 'postroad'
    CHECK (format IN ('postroad', 'resend', 'postmark'));
ALTER TABLE additional_webhooks ADD COLUMN format_events TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE additional_webhooks ADD COLUMN request_headers BYTEA;

DROP VIEW webhook_endpoints;
CREATE VIEW webhook_endpoints AS
SELECT id, account_id, url, events, enabled, secret_hint, created_at, updated_at, CAST(1 AS BIGINT) AS is_first, version, tags,
    sender_domains, mode, standard_signature, description, failing_since, disabled_reason, removed_at
FROM webhooks
UNION ALL
SELECT id, account_id, url, events, enabled, secret_hint, created_at, updated_at, CAST(0 AS BIGINT) AS is_first, version, tags,
    sender_domains, mode, standard_signature, description, failing_since, disabled_reason, removed_at
FROM additional_webhooks WHERE format = 'postroad';

CREATE VIEW all_webhooks AS
SELECT id, account_id, url, events, enabled, secret_hint, created_at, updated_at, CAST(1 AS BIGINT) AS is_first, version, tags,
    sender_domains, mode, standard_signature, description, failing_since, disabled_reason, removed_at,
    CAST('postroad' AS TEXT) COLLATE "C" AS format, CAST('' AS TEXT) COLLATE "C" AS format_events,
    CAST(NULL AS BYTEA) AS request_headers
FROM webhooks
UNION ALL
SELECT id, account_id, url, events, enabled, secret_hint, created_at, updated_at, CAST(0 AS BIGINT) AS is_first, version, tags,
    sender_domains, mode, standard_signature, description, failing_since, disabled_reason, removed_at,
    format, format_events, request_headers
FROM additional_webhooks;
