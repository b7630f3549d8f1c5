-- name: replace_acme_accounts
-- Keys of ACME accounts with another ciphertext.
UPDATE acme_accounts SET private_key = other.private_key
FROM unnest($1::text[], $2::bytea[]) AS other (directory, private_key)
WHERE acme_accounts.directory = other.directory;

-- name: replace_certificates
-- Keys of certificates with another ciphertext.
UPDATE certificates SET private_key = other.private_key
FROM unnest($1::text[], $2::text[], $3::bytea[]) AS other (directory, names, private_key)
WHERE certificates.directory = other.directory AND certificates.names = other.names;

-- name: replace_dkim_keys
-- DKIM keys with another ciphertext.
UPDATE dkim_keys SET private_key = other.private_key
FROM unnest($1::text[], $2::text[], $3::text[], $4::bytea[]) AS other (account_id, domain_id, selector, private_key)
WHERE dkim_keys.account_id = other.account_id AND dkim_keys.domain_id = other.domain_id AND dkim_keys.selector = other.selector;

-- name: replace_webhook_secrets
-- Webhook secrets with another ciphertext.
UPDATE webhook_secrets SET secret = other.secret
FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bytea[]) AS other (account_id, webhook_id, version, secret)
WHERE webhook_secrets.account_id = other.account_id AND webhook_secrets.webhook_id = other.webhook_id
    AND webhook_secrets.version = other.version;

-- name: replace_webhooks
-- Header fields with another ciphertext.
UPDATE webhooks SET request_headers = other.request_headers
FROM unnest($1::text[], $2::bytea[]) AS other (id, request_headers) WHERE webhooks.id = other.id;

-- name: replace_totp_secrets
-- Secrets of authenticator apps with another ciphertext.
UPDATE totp_secrets SET secret = other.secret
FROM unnest($1::text[], $2::bytea[]) AS other (login_id, secret) WHERE totp_secrets.login_id = other.login_id;

-- name: replace_sso_connections
-- Client secrets with another ciphertext.
UPDATE sso_connections SET client_secret = other.client_secret
FROM unnest($1::text[], $2::bytea[]) AS other (account_id, client_secret)
WHERE sso_connections.account_id = other.account_id;
