"""Removed accounts: everything that they had is deleted, in small steps, and nothing of anybody else."""

import pytest

from postroad import context, errors
from postroad.mail.signing import domain_keys
from postroad.model.bounces import disposition
from postroad.model.delivery import throttle
from postroad.model.people import callers
from postroad.services import audit_log
from postroad.services.accounts import account_registry
from postroad.services.domains import domain_registry as domains
from postroad.services.operations import cleanup, operator_jobs
from postroad.services.people import api_keys, credentials, password_links
from postroad.services.people import users as account_users
from postroad.services.suppressions import suppression_list as suppressions
from postroad.services.templates import templates
from postroad.services.webhooks import endpoints
from postroad.storage.mail import suppressions as stored_suppressions
from postroad.storage.operations import retention
from postroad.storage.people import rates
from tests import accepted_mail
from tests.contexts import PASSWORD
from tests.services import claimed_mail
from tests.storage import samples

# Rows of tables that only outside events fill.
MORE_ROWS = """
INSERT INTO async_bounces (account_id, message_id, recipient_id, received_at, action, status, fault, response)
SELECT account_id, message_id, id, 7, 'failed', '5.1.1', 'address', '550 no' FROM recipients;
INSERT INTO resends (account_id, resend_of, message_id) SELECT account_id, id, id FROM messages;
INSERT INTO attempt_conversations (account_id, message_id, recipient_id, started_at, conversation)
SELECT account_id, message_id, id, 1, 'S: 220 hello' FROM recipients;
INSERT INTO warmups (account_id, domain, day, step, used) SELECT id, 'example.com', 1, 0, 1 FROM accounts;
INSERT INTO bounce_guard_reports (account_id, report_key, day) SELECT id, 'a@example.net', 1 FROM accounts;
INSERT INTO domain_checks (account_id, domain_id, purpose, state, detail, found, checked_at)
SELECT account_id, id, 'spf', 'ok', '', '', 1 FROM domains;
INSERT INTO holds (account_id, domain, reason, held_at) SELECT id, 'example.net', 'a test', 1 FROM accounts;
INSERT INTO api_key_usage (key_id, account_id, day, recipients, credits) SELECT id, account_id, 1, 1, 1 FROM api_keys;
INSERT INTO request_log (account_id, id, caller_id, method, path, status, code, error, client_address, body_size, body,
    skipped, created_at)
SELECT id, 'req_1', '', 'GET', '/', 404, 'not_found', '', '', 0, SECRET, 0, 1 FROM accounts;
INSERT INTO inbound_routes (id, account_id, domain_id, match_key, action, created_at)
SELECT id, account_id, id, '*@' || name, 'store', 1 FROM domains;
INSERT INTO received_messages (account_id, id, route_id, recipient, envelope_sender, sender, subject, size,
    attachment_count, authentication, client_address, fingerprint, received_at)
SELECT id, 'in_1', '', 'a@example.com', '', '', '', 1, 0, '{}', '', SECRET, 1 FROM accounts;
INSERT INTO received_bodies (account_id, message_id, mime) SELECT account_id, id, SECRET FROM received_messages;
INSERT INTO received_counts (account_id, day, network, messages, bytes) SELECT id, 1, '', 1, 1 FROM accounts;
INSERT INTO saved_views SELECT id, 'view_1', 'Bounced', 'status:bounced', 1 FROM accounts;
INSERT INTO approvals (id, account_id, key_id, identity, idempotency_key, body_hash, is_batch, is_test, body,
    recipients, request_id, state, created_at)
SELECT 'apr_' || id, account_id, id, credential_id, id, SECRET, 0, 0, SECRET, 1, 'req_1', 'pending', 1 FROM api_keys;
INSERT INTO received_reports (account_id, domain, fingerprint, day, network, reporter, is_authenticated, result)
SELECT id, 'example.com', 'x', 1, '192.0.2.0/24', 'example.net', 1, 'stored' FROM accounts;
INSERT INTO dmarc_rows (account_id, domain, day, is_authenticated, reporter, source, header_from, disposition, dkim,
    spf, messages)
SELECT id, 'example.com', 1, 1, 'example.net', '192.0.2.1', 'example.com', 'none', 1, 1, 1 FROM accounts;
INSERT INTO tls_report_rows (account_id, domain, day, reporter, policy, failure, sessions)
SELECT id, 'example.com', 1, 'example.net', 'sts', '', 1 FROM accounts;
INSERT INTO dismissed_networks (account_id, domain, network)
SELECT id, 'example.com', '203.0.113.0/24' FROM accounts;
INSERT INTO failure_counts (account_id, hour, provider, reason, bounced, failed)
SELECT id, 1, 'google', 'mailbox_full', 1, 0 FROM accounts;
INSERT INTO webhooks (id, account_id, url, events, enabled, secret_hint, created_at, updated_at, is_first, version,
    tags, sender_domains, mode, standard_signature, description, disabled_reason, format, format_events)
SELECT 'whk_2_' || id, id, 'https://hooks.example.com/2', 'email.failed', 1, '', 1, 1, 0, 1, '', '', 'live', 0, '', '',
    'postroad', '' FROM accounts;
INSERT INTO webhook_secrets (account_id, webhook_id, version, secret, created_at)
SELECT account_id, id, 1, SECRET, 1 FROM webhooks WHERE is_first = 0;
INSERT INTO known_networks (user_id, network, last_login_at) SELECT id, '192.0.2.0/24', 1 FROM users
    UNION ALL SELECT id, '192.0.2.0/24', 1 FROM logins UNION ALL SELECT id, '192.0.2.0/24', 1 FROM credentials;
INSERT INTO sessions (id, login_id, user_id, account_id, kind, name, device, network, methods, created_at, last_used_at,
    expires_at, confirmed_at)
SELECT 'tok_' || id, login_id, id, account_id, 'browser', '', '', '', 'password', 1, 1, 9, 1 FROM users;
INSERT INTO totp_secrets (login_id, secret, created_at, last_step) SELECT id, SECRET, 1, 0 FROM logins;
INSERT INTO recovery_codes (login_id, code_hash) SELECT id, SECRET FROM logins;
INSERT INTO passkeys (id, login_id, credential_id, public_key, sign_count, user_handle, rp_id, transports, name,
    created_at)
SELECT 'psk_' || id, id, CAST(id AS OCTETS), SECRET, 0, SECRET, '', '', '', 1 FROM logins;
INSERT INTO sso_connections (account_id, issuer, client_id, scopes, role, groups_claim, group_roles, creates_users,
    allows_passwords, created_at, updated_at)
SELECT id, 'https://x.example', 'c', '', 'owner', 'groups', '{}', 0, 1, 1, 1 FROM accounts;
INSERT INTO sso_domains (domain, account_id) SELECT id || '.example', id FROM accounts;
INSERT INTO sso_identities (account_id, issuer, subject, login_id, created_at)
SELECT account_id, 'https://x.example', id, login_id, 1 FROM users
    UNION ALL SELECT '', 'https://x.example', id, login_id, 1 FROM users;
INSERT INTO webhook_attempts (account_id, webhook_id, delivery_id, number, started_at, duration, status_code)
SELECT account_id, webhook_id, id, 1, 1, 1, 204 FROM webhook_deliveries;
INSERT INTO notices (id, kind, account_id, user_id, subject, content, created_at)
SELECT 'ntc_' || id, 'credits.low', id, '', id, '{}', 1 FROM accounts;
INSERT INTO notice_mails (user_id, notice_id, is_digest, due_at) SELECT id, 'ntc_1', 0, 1 FROM users;
INSERT INTO notice_choices (user_id, kind, choice) SELECT id, 'credits.low', 'off' FROM users;
UPDATE webhook_deliveries SET attempt_count = 1, state = 'succeeded', ended_at = 1;
"""


def more_rows(ctx: context.Context) -> str:
    """In the words of the engine."""
    octets, secret = ("BLOB", "x'00'") if ctx.store.dialect == "sqlite" else ("BYTEA", "'\\x00'")
    return MORE_ROWS.replace("OCTETS", octets).replace("SECRET", secret)


async def furnish(ctx: context.Context, account_id: str, name: str) -> None:
    """Give an account a row of everything."""
    await accepted_mail.allow_sending(ctx, account_id, domain=f"{name}.example", amount=9)
    domain = await domains.by_name(ctx, account_id, f"{name}.example")
    await domain_keys.record(ctx, domain)
    credential, _ = await credentials.create(ctx, account_id, "main")
    await api_keys.create(
        ctx, account_id, name="key", credential_id=credential.id, scopes=frozenset({callers.Permission.SEND})
    )
    user, _ = await account_users.create(
        ctx, account_id, email=f"{name}@example.com", password=PASSWORD, role=callers.Role.OWNER
    )
    async with ctx.store.transaction() as tx:
        await password_links.create(ctx, tx, user)
        await rates.put(tx, [rates.Rate(f"replays {account_id}", account_id, throttle.SharedBucket(1, 1))])
    await templates.put(ctx, account_id, "welcome", subject="Hello", text="You", html=None)
    await suppressions.add(ctx, account_id, "gone@example.net", reason="no", source=stored_suppressions.Source.OPERATOR)
    await suppressions.add(ctx, account_id, "gone@example.net", list_name="news")
    await endpoints.save(ctx, account_id, url="https://hooks.example.com/")
    for key in ("one", "two"):
        await accepted_mail.accept(
            ctx, account_id, sender=f"shop@{name}.example", key=key, tags=("tag",), metadata={"a": "b"}
        )
    await accepted_mail.accept(ctx, account_id, sender=f"shop@{name}.example", key="one", is_test=True)
    claims = await claimed_mail.claim_all(ctx, claimed_mail.WORKER)
    await ctx.outcome_commits.submit(
        [claimed_mail.outcome(ctx, claim, disposition.Verdict.DELIVERED) for claim in claims]
    )


async def rows_of(ctx: context.Context, account_id: str) -> dict[str, int]:
    """How many rows an account has in each table that names it."""
    tables = {
        "sqlite": """SELECT name FROM sqlite_schema WHERE type = 'table' AND EXISTS (
            SELECT 1 FROM pragma_table_info(sqlite_schema.name) AS found WHERE found.name = 'account_id')""",
        "postgres": """SELECT table_name::text FROM information_schema.columns
            WHERE table_schema = 'public' AND column_name = 'account_id'""",
    }
    samples.teach(ctx.store, tables=tables[ctx.store.dialect])
    names = [row[0] for row in await samples.scan(ctx.store, "test.tables")]
    counts = {}
    for name in names:
        place = "?1" if ctx.store.dialect == "sqlite" else "$1"
        samples.teach(ctx.store, rows=f"SELECT COUNT(*) FROM {name} WHERE account_id = {place}")  # noqa: S608
        counts[name] = int((await samples.scan(ctx.store, "test.rows", account_id))[0][0])
    return counts


async def test_a_removed_account_leaves_nothing_and_takes_nothing_of_another(
    ctx: context.Context, account_id: str
) -> None:
    other = await account_registry.create(ctx, "Other")
    await furnish(ctx, account_id, "shop")
    await furnish(ctx, other.id, "other")
    async with ctx.store.transaction() as tx:
        await tx.run_script(more_rows(ctx))
    before = await rows_of(ctx, account_id)
    assert {table for table, count in before.items() if not count} == {"queue"}
    kept = await rows_of(ctx, other.id)
    assert (await operator_jobs.check_consistency(ctx)).findings == []
    with pytest.raises(errors.Conflict, match="is not closed; close it first"):
        await account_registry.remove(ctx, account_id)
    await account_registry.close(ctx, account_id)
    await account_registry.remove(ctx, account_id)
    assert set((await rows_of(ctx, account_id)).values()) == {0}
    assert await rows_of(ctx, other.id) == kept
    assert await samples.count(ctx.store, "known_networks") == 3  # of the other user, login and credential
    for table in ("logins", "totp_secrets", "recovery_codes", "passkeys"):
        assert await samples.count(ctx.store, table) == 1, table
    assert await samples.count(ctx.store, "sso_identities") == 2
    for table in ("notice_mails", "notice_choices"):
        assert await samples.count(ctx.store, table) == 1, table  # of the other user
    assert (await operator_jobs.check_consistency(ctx)).findings == []
    with pytest.raises(errors.NotFound):
        await account_registry.find(ctx, account_id)
    (entry,) = await audit_log.page(ctx, audit_log.INSTALLATION, before=None, limit=9)
    assert (audit_log.text(entry), entry.detail) == (f"removed the account Shop ({account_id})", account_id)
    await account_registry.create(ctx, "Shop")


async def test_an_account_with_queued_mail_is_not_removed(ctx: context.Context, account_id: str) -> None:
    await claimed_mail.accepted(ctx, account_id, "a@example.net")
    await account_registry.close(ctx, account_id)
    with pytest.raises(errors.Conflict, match=f"has queued mail; .* 'postroad queue cancel --account {account_id}'"):
        await account_registry.remove(ctx, account_id)
    assert (await account_registry.find(ctx, account_id)).state == "closed"


async def test_an_interrupted_removal_is_invisible_consistent_and_continued_by_maintenance(
    ctx: context.Context, account_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await furnish(ctx, account_id, "shop")
    async with ctx.store.transaction() as tx:
        await tx.run_script(more_rows(ctx))
    await account_registry.close(ctx, account_id)
    monkeypatch.setattr(retention, "MAX_ACCOUNT_ROWS", 1)
    monkeypatch.setattr(account_registry, "MAX_REMOVAL_BATCHES", 1)
    monkeypatch.setattr(account_registry, "_delete_some", _interrupted)
    with pytest.raises(KeyboardInterrupt):
        await account_registry.remove(ctx, account_id)
    monkeypatch.undo()
    monkeypatch.setattr(retention, "MAX_ACCOUNT_ROWS", 1)
    monkeypatch.setattr(account_registry, "MAX_REMOVAL_BATCHES", 1)
    assert await account_registry.page(ctx, "", 9) == []
    with pytest.raises(errors.NotFound):
        await account_registry.find(ctx, account_id)
    assert await account_registry.by_name(ctx, "Shop") is None
    for _ in range(200):  # a batch each
        assert (await operator_jobs.check_consistency(ctx)).findings == []
        if (await cleanup.sweep(ctx)).accounts:
            break
    assert set((await rows_of(ctx, account_id)).values()) == {0}
    assert await samples.count(ctx.store, "accounts") == 0


async def _interrupted(*_: object) -> bool:
    raise KeyboardInterrupt
