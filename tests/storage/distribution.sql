-- How mail would be distributed with Citus, for an empty database after `postroad migrate`, on the coordinator.
-- It has never been run. test_distribution.py holds it to the schema.
CREATE EXTENSION citus;

-- Every unique key must contain the distribution column.
ALTER TABLE api_key_usage DROP CONSTRAINT api_key_usage_pkey, ADD PRIMARY KEY (account_id, key_id);
ALTER TABLE idempotency_keys DROP CONSTRAINT idempotency_keys_pkey, ADD PRIMARY KEY (account_id, credential_id, key);
ALTER TABLE rates DROP CONSTRAINT rates_pkey, ADD PRIMARY KEY (account_id, name);
DROP INDEX accounts_by_name;

SELECT create_distributed_table('accounts', 'id');
SELECT create_distributed_table(name, 'account_id', colocate_with => 'accounts') FROM unnest(ARRAY[
    'api_key_usage', 'async_bounces', 'attempt_conversations', 'attempts', 'audit_log', 'bodies',
    'bounce_guard_days', 'bounce_guard_reports', 'dmarc_rows', 'failure_counts', 'hourly_counts',
    'idempotency_keys', 'ledger', 'message_metadata', 'message_tags', 'messages', 'queue', 'rates',
    'received_bodies', 'received_counts', 'received_messages', 'received_reports', 'recipients', 'request_log',
    'resends', 'suppressions', 'tls_report_rows', 'unsubscribes', 'warmups', 'webhook_attempts',
    'webhook_deliveries'
]) AS name;
-- Small tables that belong to accounts: a copy on every node.
SELECT create_reference_table(name) FROM unnest(ARRAY[
    'api_keys', 'approvals', 'credentials', 'dismissed_networks', 'dkim_keys', 'domain_checks', 'domains', 'holds',
    'inbound_routes', 'notices',
    'password_links', 'saved_views', 'sessions', 'sso_connections', 'sso_domains', 'sso_identities',
    'template_versions', 'templates', 'users', 'webhook_secrets', 'webhooks'
]) AS name;
