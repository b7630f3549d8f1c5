-- compatible from: 12
-- Several webhook endpoints for each account. `webhooks` keeps the first, which is the contract's `/v1/webhook`, and
-- `additional_webhooks` has the others: a process of the version before reads and changes the first, writes events for it
-- alone, and delivers none of the others, because it does not find them. `webhook_endpoints` is all of them.

-- Which data an event has, which messages it is about (one of these tags, one of these sender domains, a line for each;
-- empty: all), of live or of test mode, whether requests are also signed as Standard Webhooks are, since when every attempt
-- has failed, and why an endpoint was disabled by the service.
ALTER TABLE webhooks ADD COLUMN version BIGINT NOT NULL DEFAULT 1 CHECK (version IN (1, 2));
ALTER TABLE webhooks ADD COLUMN tags TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE webhooks ADD COLUMN sender_domains TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE webhooks ADD COLUMN mode TEXT COLLATE "C" NOT NULL DEFAULT 'live' CHECK (mode IN ('live', 'test'));
ALTER TABLE webhooks ADD COLUMN standard_signature BIGINT NOT NULL DEFAULT 0 CHECK (standard_signature IN (0, 1));
ALTER TABLE webhooks ADD COLUMN description TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE webhooks ADD COLUMN failing_since BIGINT;
ALTER TABLE webhooks ADD COLUMN disabled_reason TEXT COLLATE "C" NOT NULL DEFAULT '';

-- `pinged_at` is in `webhook_pings` for the first.
CREATE TABLE additional_webhooks (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    account_id TEXT COLLATE "C" NOT NULL,
    url TEXT COLLATE "C" NOT NULL,
    events TEXT COLLATE "C" NOT NULL,
    enabled BIGINT NOT NULL CHECK (enabled IN (0, 1)),
    secret_hint TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    removed_at BIGINT,
    version BIGINT NOT NULL DEFAULT 1 CHECK (version IN (1, 2)),
    tags TEXT COLLATE "C" NOT NULL DEFAULT '',
    sender_domains TEXT COLLATE "C" NOT NULL DEFAULT '',
    mode TEXT COLLATE "C" NOT NULL DEFAULT 'live' CHECK (mode IN ('live', 'test')),
    standard_signature BIGINT NOT NULL DEFAULT 0 CHECK (standard_signature IN (0, 1)),
    description TEXT COLLATE "C" NOT NULL DEFAULT '',
    failing_since BIGINT,
    disabled_reason TEXT COLLATE "C" NOT NULL DEFAULT '',
    pinged_at BIGINT
);
CREATE INDEX additional_webhooks_of_account ON additional_webhooks (account_id) WHERE removed_at IS NULL;
CREATE INDEX additional_webhooks_removed ON additional_webhooks (removed_at) WHERE removed_at IS NOT NULL;

CREATE VIEW webhook_endpoints AS
SELECT id, account_id, url, events, enabled, secret_hint, created_at, updated_at, CAST(1 AS BIGINT) AS is_first, version, tags,
    sender_domains, mode, standard_signature, description, failing_since, disabled_reason, removed_at
FROM webhooks
UNION ALL
SELECT id, account_id, url, events, enabled, secret_hint, created_at, updated_at, CAST(0 AS BIGINT) AS is_first, version, tags,
    sender_domains, mode, standard_signature, description, failing_since, disabled_reason, removed_at
FROM additional_webhooks;
