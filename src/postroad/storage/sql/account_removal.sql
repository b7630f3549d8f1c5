-- name: has_queue
-- A row when mail of an account is not final yet.
SELECT 1 FROM queue WHERE account_id = $1 LIMIT 1;

-- name: mark
-- Mark an account as removed and free its name.
UPDATE accounts SET removed_at = $2, name_key = NULL WHERE id = $1;

-- name: mark_webhooks
-- Mark its endpoints as removed.
UPDATE webhooks SET removed_at = $2 WHERE account_id = $1 AND removed_at IS NULL;

-- name: webhook_secrets
-- Delete their secrets.
DELETE FROM webhook_secrets WHERE account_id = $1;

-- name: marked
-- Accounts that are marked, the first one first.
SELECT id FROM accounts WHERE removed_at IS NOT NULL ORDER BY removed_at LIMIT $1;

-- name: webhooks
-- The endpoints of an account.
SELECT id FROM webhooks WHERE account_id = $1 AND removed_at IS NOT NULL;

-- name: account
-- Delete the row of an account that is marked.
DELETE FROM accounts WHERE id = $1 AND removed_at IS NOT NULL;

-- name: idempotency_keys
-- Delete idempotency keys of its credentials, or of the account itself, live and of test mode.
DELETE FROM idempotency_keys WHERE (credential_id, key) IN (
    SELECT credential_id, key FROM idempotency_keys
    WHERE credential_id IN (
        SELECT id FROM credentials WHERE account_id = $1
        UNION ALL SELECT id || '/test' FROM credentials WHERE account_id = $1
        UNION ALL SELECT CAST($1 AS TEXT) UNION ALL SELECT CAST($1 AS TEXT) || '/test') LIMIT $2);

-- name: known_networks
-- Delete networks of its users, of their logins that belong to no other account, and of its credentials.
DELETE FROM known_networks WHERE (user_id, network) IN (
    SELECT user_id, network FROM known_networks WHERE user_id IN (
        SELECT id FROM users WHERE account_id = $1 UNION ALL SELECT id FROM credentials WHERE account_id = $1
        UNION ALL SELECT login_id FROM users WHERE account_id = $1 AND NOT EXISTS (
            SELECT 1 FROM users AS others WHERE others.login_id = users.login_id AND others.account_id <> $1)) LIMIT $2);

-- name: notice_mails
-- Delete which notices its users got.
DELETE FROM notice_mails WHERE (user_id, notice_id) IN (
    SELECT user_id, notice_id FROM notice_mails WHERE user_id IN (SELECT id FROM users WHERE account_id = $1) LIMIT $2);

-- name: notice_choices
-- Delete what its users have chosen.
DELETE FROM notice_choices WHERE (user_id, kind) IN (
    SELECT user_id, kind FROM notice_choices WHERE user_id IN (SELECT id FROM users WHERE account_id = $1) LIMIT $2);

-- name: notices
-- Delete rows of notices.
DELETE FROM notices WHERE id IN (SELECT id FROM notices WHERE account_id = $1 LIMIT $2);

-- name: password_links
-- Delete password links of its users.
DELETE FROM password_links WHERE token_hash IN (
    SELECT token_hash FROM password_links WHERE user_id IN (SELECT id FROM users WHERE account_id = $1) LIMIT $2);

-- name: received_messages
-- Delete rows of received_messages.
DELETE FROM received_messages WHERE (account_id, id) IN (
    SELECT account_id, id FROM received_messages WHERE account_id = $1 LIMIT $2);

-- name: received_counts
-- Delete rows of received_counts.
DELETE FROM received_counts WHERE (account_id, day, network) IN (
    SELECT account_id, day, network FROM received_counts WHERE account_id = $1 LIMIT $2);

-- name: inbound_routes
-- Delete rows of inbound_routes.
DELETE FROM inbound_routes WHERE id IN (SELECT id FROM inbound_routes WHERE account_id = $1 LIMIT $2);

-- name: approvals
-- Delete rows of approvals.
DELETE FROM approvals WHERE id IN (SELECT id FROM approvals WHERE account_id = $1 LIMIT $2);

-- name: api_key_usage
-- Delete rows of api_key_usage.
DELETE FROM api_key_usage WHERE key_id IN (SELECT key_id FROM api_key_usage WHERE account_id = $1 LIMIT $2);

-- name: api_keys
-- Delete rows of api_keys.
DELETE FROM api_keys WHERE id IN (SELECT id FROM api_keys WHERE account_id = $1 LIMIT $2);

-- name: rates
-- Delete rows of rates.
DELETE FROM rates WHERE name IN (SELECT name FROM rates WHERE account_id = $1 LIMIT $2);

-- name: credentials
-- Delete rows of credentials.
DELETE FROM credentials WHERE id IN (SELECT id FROM credentials WHERE account_id = $1 LIMIT $2);

-- name: sessions
-- Delete rows of sessions.
DELETE FROM sessions WHERE id IN (SELECT id FROM sessions WHERE account_id = $1 LIMIT $2);

-- name: totp_secrets
-- Delete authenticator apps of its users whose login belongs to no other account.
DELETE FROM totp_secrets WHERE login_id IN (
    SELECT totp_secrets.login_id FROM users JOIN totp_secrets ON totp_secrets.login_id = users.login_id
    WHERE users.account_id = $1 AND NOT EXISTS (
        SELECT 1 FROM users AS others WHERE others.login_id = users.login_id AND others.account_id <> $1) LIMIT $2);

-- name: recovery_codes
-- Delete recovery codes of its users whose login belongs to no other account.
DELETE FROM recovery_codes WHERE (login_id, code_hash) IN (
    SELECT recovery_codes.login_id, code_hash FROM users JOIN recovery_codes ON recovery_codes.login_id = users.login_id
    WHERE users.account_id = $1 AND NOT EXISTS (
        SELECT 1 FROM users AS others WHERE others.login_id = users.login_id AND others.account_id <> $1) LIMIT $2);

-- name: passkeys
-- Delete passkeys of its users whose login belongs to no other account.
DELETE FROM passkeys WHERE id IN (
    SELECT passkeys.id FROM users JOIN passkeys ON passkeys.login_id = users.login_id
    WHERE users.account_id = $1 AND NOT EXISTS (
        SELECT 1 FROM users AS others WHERE others.login_id = users.login_id AND others.account_id <> $1) LIMIT $2);

-- name: sso_identities
-- Delete whom its provider knows, and who its users are at that of the installation if they belong to no other account.
DELETE FROM sso_identities WHERE (account_id, issuer, subject) IN (
    SELECT account_id, issuer, subject FROM sso_identities WHERE account_id = $1 OR login_id IN (
        SELECT login_id FROM users WHERE account_id = $1 AND NOT EXISTS (
            SELECT 1 FROM users AS others WHERE others.login_id = users.login_id AND others.account_id <> $1)) LIMIT $2);

-- name: sso_domains
-- Delete rows of sso_domains.
DELETE FROM sso_domains WHERE domain IN (SELECT domain FROM sso_domains WHERE account_id = $1 LIMIT $2);

-- name: sso_connections
-- Delete rows of sso_connections.
DELETE FROM sso_connections WHERE account_id IN (SELECT account_id FROM sso_connections WHERE account_id = $1 LIMIT $2);

-- name: logins
-- Delete logins of its users that belong to no other account.
DELETE FROM logins WHERE id IN (
    SELECT logins.id FROM users JOIN logins ON logins.id = users.login_id
    WHERE users.account_id = $1 AND NOT EXISTS (
        SELECT 1 FROM users AS others WHERE others.login_id = logins.id AND others.account_id <> $1) LIMIT $2);

-- name: users
-- Delete rows of users.
DELETE FROM users WHERE id IN (SELECT id FROM users WHERE account_id = $1 LIMIT $2);

-- name: dkim_keys
-- Delete rows of dkim_keys.
DELETE FROM dkim_keys WHERE (account_id, domain_id, selector) IN (SELECT account_id, domain_id, selector FROM dkim_keys WHERE account_id = $1 LIMIT $2);

-- name: domain_checks
-- Delete rows of domain_checks.
DELETE FROM domain_checks WHERE (account_id, domain_id, purpose) IN (SELECT account_id, domain_id, purpose FROM domain_checks WHERE account_id = $1 LIMIT $2);

-- name: warmups
-- Delete rows of warmups.
DELETE FROM warmups WHERE (account_id, domain) IN (SELECT account_id, domain FROM warmups WHERE account_id = $1 LIMIT $2);

-- name: received_reports
-- Delete rows of received_reports.
DELETE FROM received_reports WHERE (account_id, domain, fingerprint) IN (
    SELECT account_id, domain, fingerprint FROM received_reports WHERE account_id = $1 LIMIT $2);

-- name: dmarc_rows
-- Delete rows of dmarc_rows.
DELETE FROM dmarc_rows WHERE (account_id, domain, day, is_authenticated, reporter, source, header_from, disposition, dkim, spf) IN (
    SELECT account_id, domain, day, is_authenticated, reporter, source, header_from, disposition, dkim, spf FROM dmarc_rows WHERE account_id = $1 LIMIT $2);

-- name: tls_report_rows
-- Delete rows of tls_report_rows.
DELETE FROM tls_report_rows WHERE (account_id, domain, day, reporter, policy, failure) IN (
    SELECT account_id, domain, day, reporter, policy, failure FROM tls_report_rows WHERE account_id = $1 LIMIT $2);

-- name: dismissed_networks
-- Delete rows of dismissed_networks.
DELETE FROM dismissed_networks WHERE (account_id, domain, network) IN (
    SELECT account_id, domain, network FROM dismissed_networks WHERE account_id = $1 LIMIT $2);

-- name: domains
-- Delete rows of domains.
DELETE FROM domains WHERE id IN (SELECT id FROM domains WHERE account_id = $1 LIMIT $2);

-- name: saved_views
-- Delete rows of saved_views.
DELETE FROM saved_views WHERE (account_id, id) IN (SELECT account_id, id FROM saved_views WHERE account_id = $1 LIMIT $2);

-- name: template_versions
-- Delete rows of template_versions.
DELETE FROM template_versions WHERE template_id IN (
    SELECT template_id FROM template_versions WHERE account_id = $1 LIMIT $2
);

-- name: templates
-- Delete rows of templates.
DELETE FROM templates WHERE id IN (SELECT id FROM templates WHERE account_id = $1 LIMIT $2);

-- name: suppressions
-- Delete rows of suppressions.
DELETE FROM suppressions WHERE (account_id, email_key) IN (SELECT account_id, email_key FROM suppressions WHERE account_id = $1 LIMIT $2);

-- name: unsubscribes
-- Delete rows of unsubscribes.
DELETE FROM unsubscribes WHERE (account_id, list_name, email_key) IN (SELECT account_id, list_name, email_key FROM unsubscribes WHERE account_id = $1 LIMIT $2);

-- name: bounce_guard_days
-- Delete rows of bounce_guard_days.
DELETE FROM bounce_guard_days WHERE (account_id, day) IN (SELECT account_id, day FROM bounce_guard_days WHERE account_id = $1 LIMIT $2);

-- name: bounce_guard_reports
-- Delete rows of bounce_guard_reports.
DELETE FROM bounce_guard_reports WHERE (account_id, report_key) IN (SELECT account_id, report_key FROM bounce_guard_reports WHERE account_id = $1 LIMIT $2);

-- name: hourly_counts
-- Delete rows of hourly_counts.
DELETE FROM hourly_counts WHERE (account_id, hour, provider) IN (SELECT account_id, hour, provider FROM hourly_counts WHERE account_id = $1 LIMIT $2);

-- name: failure_counts
-- Delete rows of failure_counts.
DELETE FROM failure_counts WHERE (account_id, hour, provider, reason) IN (SELECT account_id, hour, provider, reason FROM failure_counts WHERE account_id = $1 LIMIT $2);

-- name: holds
-- Delete rows of holds.
DELETE FROM holds WHERE (account_id, domain) IN (SELECT account_id, domain FROM holds WHERE account_id = $1 LIMIT $2);

-- name: ledger
-- Delete rows of ledger.
DELETE FROM ledger WHERE (account_id, id) IN (SELECT account_id, id FROM ledger WHERE account_id = $1 LIMIT $2);

-- name: request_log
-- Delete rows of request_log.
DELETE FROM request_log WHERE (account_id, id) IN (SELECT account_id, id FROM request_log WHERE account_id = $1 LIMIT $2);

-- name: audit_log
-- Delete rows of audit_log.
DELETE FROM audit_log WHERE (account_id, id) IN (SELECT account_id, id FROM audit_log WHERE account_id = $1 LIMIT $2);
