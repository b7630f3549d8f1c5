"""The audit finds nothing in a healthy store, and finds each kind of damage, on both engines."""

import pytest

from postroad import context
from postroad.model.people import callers
from postroad.services.operations import operator_jobs
from postroad.services.people import api_keys, credentials
from postroad.services.templates import templates
from postroad.storage.operations import consistency as stored_consistency
from postroad.storage.people import accounts as stored_accounts
from postroad.storage.people import users
from tests import accepted_mail, contexts
from tests.services.people import authenticator
from tests.storage import webhook_samples

# For each check a way to break what it guards. The store has one account, with two messages of two recipients each.
DAMAGE = {
    "balances": "UPDATE accounts SET available = available + 1",
    "reservations": "UPDATE recipients SET billing_status = 'settled' WHERE email_key LIKE 'a@%'",
    "recipient_counts": "DELETE FROM recipients WHERE email_key LIKE 'a@%'",
    "message_reservations": "UPDATE ledger SET reserved = 3 WHERE kind = 'reserve'",
    "message_credits": "UPDATE recipients SET billing_status = 'released' WHERE email_key LIKE 'a@%'",
    "missing_bodies": "DELETE FROM bodies",
    "body_sizes": "UPDATE messages SET size = size - 1",
    "wrong_statuses": "UPDATE recipients SET status = 'delivered'",
    "message_ends": "UPDATE messages SET ended_at = 1",
    "unqueued": "DELETE FROM queue WHERE email_key LIKE 'a@%'",
    "queued_final": "UPDATE recipients SET status = 'failed' WHERE email_key LIKE 'a@%'",
    "wrong_billing": "UPDATE recipients SET status = 'bounced', billing_status = 'settled' WHERE email_key LIKE 'a@%'",
    "wrong_message_billing": "UPDATE messages SET billing_status = 'released'",
    "access_version": "DELETE FROM access_version",
    "webhook_secrets": "DELETE FROM webhook_secrets",
    "webhook_overtried": "UPDATE webhook_deliveries SET attempt_count = 8",
    "webhook_attempts": "DELETE FROM webhook_attempts",
    "webhook_ends": "UPDATE webhook_deliveries SET ended_at = NULL",
    "orphan_rows": "DELETE FROM messages",
}
# Tables with rows of an account, and what a finding calls such a row.
OF_ACCOUNTS = {
    "bodies": "body",
    "message_tags": "tag",
    "message_metadata": "metadata",
    "recipients": "recipient",
    "queue": "queued recipient",
    "attempts": "attempt",
    "messages": "message",
    "ledger": "ledger entry",
    "idempotency_keys": "idempotency key",
    "users": "user",
    "api_keys": "API key",
    "credentials": "credential",
    "domains": "domain",
    "templates": "template",
    "webhooks": "webhook",
    "webhook_secrets": "webhook secret",
    "webhook_deliveries": "webhook delivery",
    "webhook_attempts": "webhook attempt",
}
# Each belongs to an account of its own, which does not exist.
ORPHANS = {
    **{kind: f"UPDATE {table} SET account_id = 'acc_of_{table}'" for table, kind in OF_ACCOUNTS.items()},  # noqa: S608
    "login": "UPDATE users SET login_id = NULL",
    "authenticator app": "UPDATE totp_secrets SET login_id = 'lgn_gone'",
    "recovery code": "UPDATE recovery_codes SET login_id = 'lgn_gone'",
    "passkey": "INSERT INTO passkeys "
    "SELECT 'psk_1', 'lgn_gone', secret, secret, 0, secret, '', '', '', 0, CAST(NULL AS BIGINT) FROM totp_secrets",
    "session": "UPDATE sessions SET user_id = 'usr_gone'",
    "single sign-on identity": "INSERT INTO sso_identities VALUES ('', 'https://x.example', '7', 'lgn_gone', 0)",
    "single sign-on": "INSERT INTO sso_connections VALUES "
    "('acc_gone', 'https://x.example', 'c', NULL, '', 'owner', 'groups', '{}', 0, 1, 0, 0)",
    "single sign-on domain": "INSERT INTO sso_domains VALUES ('corp.example', 'acc_nowhere')",
}
# As if all had been tried once.
ATTEMPTS = """
    INSERT INTO attempts (account_id, message_id, recipient_id, started_at, duration, provider_queue, host, address,
        tls, stage, verdict, fault, reason, smtp_code, enhanced_code, response, in_doubt, source)
    SELECT account_id, message_id, id, 0, 0, '', '', '', '', '', 'retry', NULL, '', NULL, '', '', 0, '' FROM recipients
"""


@pytest.fixture(autouse=True)
async def _some_of_everything(
    ctx: context.Context, account: stored_accounts.Account, owner: users.User, clock: contexts.Clock
) -> None:
    await accepted_mail.allow_sending(ctx, account.id)
    await credentials.create(ctx, account.id, "Web shop")
    await contexts.begin_session(ctx, owner)
    await authenticator.set_up(ctx, owner, clock)
    await api_keys.create(ctx, account.id, credential_id=None, name="Shop", scopes=frozenset({callers.Permission.SEND}))
    await templates.put(ctx, account.id, "welcome", subject="Hello", text="x", html=None)
    for key in ("one", "two"):
        to = ("a@example.net", "b@example.net")
        await accepted_mail.accept(ctx, account.id, to=to, tags=("orders",), metadata={"a": "b"}, key=key)
    await damage(ctx, ATTEMPTS)
    reported = webhook_samples.delivery(
        1, "whk_1", account.id, state="succeeded", attempt_count=1, ended_at=ctx.clock()
    )
    endpoint, secret = webhook_samples.webhook("whk_1", account.id), webhook_samples.secret(1, "whk_1", account.id)
    await webhook_samples.add(ctx.store, endpoint, secret, reported, webhook_samples.attempt(reported))


async def damage(ctx: context.Context, statement: str) -> None:
    async with ctx.store.transaction() as tx:
        await tx.run_script(statement)


async def test_a_healthy_store_is_counted_and_nothing_is_off(ctx: context.Context) -> None:
    report = await operator_jobs.check_consistency(ctx)
    assert report.findings == []
    assert (report.counts.accounts, report.counts.messages, report.counts.recipients) == (1, 2, 4)
    assert report.counts.ledger_entries == 3


def test_every_check_is_put_to_the_test() -> None:
    assert DAMAGE.keys() == stored_consistency.CHECKS.keys()


@pytest.mark.parametrize("check", DAMAGE)
async def test_damage_is_found_by_its_check(ctx: context.Context, check: str) -> None:
    await damage(ctx, DAMAGE[check])
    findings = (await operator_jobs.check_consistency(ctx)).findings
    assert check in {finding.check for finding in findings}
    assert "{" not in "".join(finding.text for finding in findings)


async def test_rows_of_accounts_that_do_not_exist_belong_to_nothing(ctx: context.Context) -> None:
    for statement in ORPHANS.values():
        await damage(ctx, statement)
    findings = (await operator_jobs.check_consistency(ctx)).findings
    texts = [finding.text for finding in findings if finding.check == "orphan_rows"]
    assert [kind for kind in ORPHANS if not any(text.startswith(f"{kind} ") for text in texts)] == []


async def test_a_broken_store_does_not_flood_the_report(ctx: context.Context, account: stored_accounts.Account) -> None:
    for _ in range(3):
        await accepted_mail.accept(ctx, account.id, to=tuple(f"{number}@example.net" for number in range(40)))
    await damage(ctx, "DELETE FROM messages")
    orphans = [
        finding for finding in (await operator_jobs.check_consistency(ctx)).findings if finding.check == "orphan_rows"
    ]
    assert len(orphans) == 100
