-- name: acme_accounts
-- Encrypted keys of ACME accounts after a place: what names them, and the ciphertext.
SELECT directory, private_key FROM acme_accounts WHERE directory > $1 ORDER BY directory LIMIT $2;

-- name: replace_acme_accounts
-- Keys of ACME accounts with another ciphertext.
UPDATE acme_accounts SET private_key = $2 WHERE directory = $1;

-- name: certificates
-- Encrypted keys of certificates after a place: what names them, and the ciphertext.
SELECT directory, names, private_key FROM certificates
WHERE (directory, names) > ($1, $2) AND LENGTH(private_key) > 0 ORDER BY directory, names LIMIT $3;

-- name: replace_certificates
-- Keys of certificates with another ciphertext.
UPDATE certificates SET private_key = $3 WHERE directory = $1 AND names = $2;

-- name: dkim_keys
-- Encrypted DKIM keys after a place: what names them, and the ciphertext.
SELECT account_id, domain_id, selector, private_key FROM dkim_keys
WHERE (account_id, domain_id, selector) > ($1, $2, $3) AND LENGTH(private_key) > 0
ORDER BY account_id, domain_id, selector LIMIT $4;

-- name: replace_dkim_keys
-- DKIM keys with another ciphertext.
UPDATE dkim_keys SET private_key = $4 WHERE account_id = $1 AND domain_id = $2 AND selector = $3;

-- name: webhook_secrets
-- Encrypted webhook secrets after a place: what names them, and the ciphertext.
SELECT account_id, webhook_id, version, secret FROM webhook_secrets
WHERE (account_id, webhook_id, version) > ($1, $2, $3) ORDER BY account_id, webhook_id, version LIMIT $4;

-- name: replace_webhook_secrets
-- Webhook secrets with another ciphertext.
UPDATE webhook_secrets SET secret = $4 WHERE account_id = $1 AND webhook_id = $2 AND version = $3;

-- name: webhooks
-- Encrypted header fields of webhook requests after a place: what names them, and the ciphertext.
SELECT id, request_headers FROM webhooks WHERE id > $1 AND request_headers IS NOT NULL ORDER BY id LIMIT $2;

-- name: replace_webhooks
-- Header fields with another ciphertext.
UPDATE webhooks SET request_headers = $2 WHERE id = $1;

-- name: totp_secrets
-- Encrypted secrets of authenticator apps after a place: what names them, and the ciphertext.
SELECT login_id, secret FROM totp_secrets WHERE login_id > $1 ORDER BY login_id LIMIT $2;

-- name: replace_totp_secrets
-- Secrets of authenticator apps with another ciphertext.
UPDATE totp_secrets SET secret = $2 WHERE login_id = $1;

-- name: sso_connections
-- Encrypted client secrets of single sign-on after a place: what names them, and the ciphertext.
SELECT account_id, client_secret FROM sso_connections
WHERE account_id > $1 AND client_secret IS NOT NULL ORDER BY account_id LIMIT $2;

-- name: replace_sso_connections
-- Client secrets with another ciphertext.
UPDATE sso_connections SET client_secret = $2 WHERE account_id = $1;
