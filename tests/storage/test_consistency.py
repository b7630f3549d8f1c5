"""Consistency checks: a sound database has no findings, and each kind of damage is found by its check."""

import contextlib

import pytest

from postroad.storage.engine.store import Store
from postroad.storage.mail import messages, queue
from postroad.storage.operations import consistency
from postroad.storage.people import accounts, credentials
from tests.storage import samples, webhook_samples
from tests.storage.test_credentials import credential

DAMAGE = {
    "balances": "UPDATE accounts SET available = available + 1",
    "reservations": "UPDATE recipients SET billing_status = 'settled', status = 'delivered' WHERE id = 'rcp_em_1_0'",
    "recipient_counts": "DELETE FROM recipients WHERE id = 'rcp_em_1_1'",
    "message_reservations": "DELETE FROM ledger WHERE kind = 'reserve'",
    "message_credits": "UPDATE ledger SET message_id = 'em_9' WHERE kind = 'reserve'",
    "missing_bodies": "DELETE FROM bodies",
    "body_sizes": "UPDATE messages SET size = size + 1",
    "wrong_statuses": "UPDATE messages SET status = 'partial'",
    "message_ends": "UPDATE messages SET ended_at = 1",
    "unqueued": "DELETE FROM queue WHERE recipient_id = 'rcp_em_1_0'",
    "queued_final": "UPDATE recipients SET billing_status = 'settled', status = 'delivered' WHERE id = 'rcp_em_1_0'",
    "wrong_billing": "UPDATE recipients SET status = 'bounced' WHERE id = 'rcp_em_1_0'",
    "wrong_message_billing": "UPDATE messages SET billing_status = 'released'",
    "access_version": "DELETE FROM access_version",
    "webhook_secrets": "UPDATE webhook_secrets SET expires_at = 1",
    "webhook_overtried": "UPDATE webhook_deliveries SET attempt_count = 8",
    "webhook_attempts": "DELETE FROM webhook_attempts WHERE number = 1",
    "webhook_ends": "UPDATE webhook_deliveries SET ended_at = 1 WHERE state = 'waiting'",
}
# Webhooks are damaged in other ways too.
WEBHOOK_DAMAGE = {
    "webhook_secrets": [
        "DELETE FROM webhook_secrets",
        "UPDATE webhook_secrets SET expires_at = NULL",
    ],
    "webhook_overtried": ["UPDATE webhook_deliveries SET attempt_count = -1 WHERE attempt_count = 0"],
    "webhook_attempts": [
        "UPDATE webhook_attempts SET number = 3 WHERE number = 2",
        "UPDATE webhook_attempts SET number = 0 WHERE number = 1",
        "UPDATE webhook_deliveries SET worker = NULL",
        "UPDATE webhook_deliveries SET attempt_count = 1 WHERE state = 'ready'",
    ],
    "webhook_ends": ["UPDATE webhook_deliveries SET ended_at = NULL"],
    "orphan_rows": [
        "UPDATE webhooks SET removed_at = 1",
        "UPDATE webhook_deliveries SET account_id = 'acc_9'",
    ],
}
ORPHANS = {
    "recipient": "UPDATE recipients SET message_id = 'em_9'",
    "body": "UPDATE bodies SET message_id = 'em_9'",
    "idempotency key": "UPDATE idempotency_keys SET message_id = 'em_9'",
    "tag": "UPDATE message_tags SET message_id = 'em_9'",
    "metadata": "UPDATE message_metadata SET message_id = 'em_9'",
    "queued recipient": "UPDATE queue SET account_id = 'acc_9'",
    "attempt": (
        "INSERT INTO attempts VALUES "
        "('acc_1', 'em_1', 'rcp_9', 0, 0, '', '', '', '', '', '', 'retry', NULL, '', NULL, '', '', 0)"
    ),
    "asynchronous bounce": (
        "INSERT INTO async_bounces VALUES ('acc_1', 'em_1', 'rcp_9', 0, 'failed', '5.1.1', 'address', '')"
    ),
    "message": "UPDATE messages SET account_id = 'acc_9'",
    "ledger entry": "UPDATE ledger SET account_id = 'acc_9'",
    "credential": "UPDATE credentials SET account_id = 'acc_9'",
    "user": "INSERT INTO users (id, account_id, email, email_key, role, tokens_valid_from, created_at) "
    "VALUES ('usr_1', 'acc_9', 'e', 'e', 'owner', 0, 0)",
    "login": "INSERT INTO logins VALUES ('lgn_1', 'e', 'e', 'h', 0, 0)",
    "authenticator app": "INSERT INTO totp_secrets VALUES ('lgn_9', CAST('s' AS BLOB), 0, NULL, 0)",
    "recovery code": "INSERT INTO recovery_codes VALUES ('lgn_9', CAST('h' AS BLOB))",
    "passkey": "INSERT INTO passkeys VALUES "
    "('psk_1', 'lgn_9', CAST('c' AS BLOB), CAST('k' AS BLOB), 0, CAST('u' AS BLOB), '', '', '', 0, NULL)",
    "session": "INSERT INTO sessions VALUES "
    "('tok_1', 'lgn_1', 'usr_9', 'acc_1', 'browser', '', '', '', '', 0, 0, 0, 0, NULL)",
    "single sign-on identity": "INSERT INTO sso_identities VALUES ('acc_1', 'https://x.example', '7', 'lgn_9', 0)",
    "single sign-on": "INSERT INTO sso_connections VALUES "
    "('acc_9', 'https://x.example', 'c', NULL, '', 'owner', 'groups', '{}', 0, 1, 0, 0)",
    "single sign-on domain": "INSERT INTO sso_domains VALUES ('corp.example', 'acc_1')",
    "API key": "INSERT INTO api_keys (id, account_id, credential_id, name, key_hash, hint, scopes, created_at) "
    "VALUES ('key_1', 'acc_9', 'cred_9', '', CAST('h' AS BLOB), '', '', 0)",
    "domain": "INSERT INTO domains (id, account_id, name, created_at) VALUES ('dom_1', 'acc_9', 'example.com', 0)",
    "template": "INSERT INTO templates VALUES ('tpl_1', 'acc_9', 'a', NULL, NULL, NULL, 's', NULL, NULL, 0, 0)",
    "webhook attempt": "UPDATE webhook_attempts SET delivery_id = 'whd_9' WHERE number = 2",
    "webhook delivery": "UPDATE webhook_deliveries SET webhook_id = 'whk_9'",
    "webhook secret": "UPDATE webhook_secrets SET account_id = 'acc_9'",
    "webhook": "UPDATE webhooks SET account_id = 'acc_9'",
}


@pytest.fixture(autouse=True)
async def _a_message_with_all_that_belongs_to_it(store: Store) -> None:
    reserve = samples.reservation("em_1", recipients=2)
    async with store.transaction() as tx:
        await samples.add_account(tx, credits=10)
        await credentials.insert(tx, credential("cred_1"))
        await messages.insert(tx, [samples.message("em_1", recipient_count=2, tags=("tag",), metadata='{"a":"b"}')])
        both = [samples.recipient("em_1", 0), samples.recipient("em_1", 1)]
        await messages.insert_recipients(tx, both)
        await queue.insert(tx, both, {"em_1": 4}, now=samples.NOW)
        await accounts.record_entries(tx, [reserve])
        await messages.insert_idempotency_keys(
            tx, [messages.NewIdempotencyKey("cred_1", "key", "acc_1", b"hash", "em_1", 1)]
        )
    await _add_a_webhook(store)


async def _add_a_webhook(store: Store) -> None:
    """Told, under way, waiting for another attempt, untried, and with a message that is not there any more."""
    reported = webhook_samples.delivery(1, state="succeeded", attempt_count=2, ended_at=samples.NOW)
    under_way = webhook_samples.delivery(2, state="waiting", attempt_count=2, worker="w1")
    waiting = webhook_samples.delivery(3, state="waiting", attempt_count=1)
    tried = [(reported, 1), (reported, 2), (under_way, 1), (waiting, 1)]
    await webhook_samples.add(
        store,
        webhook_samples.webhook(),
        webhook_samples.secret(1, expires_at=samples.NOW),
        webhook_samples.secret(2),
        *(reported, under_way, waiting, webhook_samples.delivery(4)),
        *(webhook_samples.attempt(one, number) for one, number in tried),
    )


class Undone(Exception):
    """Takes back what a statement has damaged."""


async def damage(store: Store, statement: str) -> list[consistency.Finding]:
    """What is found after a statement, which is undone."""
    samples.teach(store, damage=statement.replace("AS BLOB", "AS BYTEA") if store.dialect == "postgres" else statement)
    found: list[consistency.Finding] = []
    with contextlib.suppress(Undone):
        async with store.transaction() as tx:
            await tx.execute("test.damage")
            found = await consistency.findings(tx)
            raise Undone
    return found


async def test_a_consistent_store_has_no_findings_and_is_counted(store: Store) -> None:
    async with store.scanning() as tx:
        assert await consistency.findings(tx) == []
        counts = await consistency.counts(tx)
    assert counts == consistency.Counts(accounts=1, messages=1, recipients=2, ledger_entries=2, idempotency_keys=1)


def test_every_check_is_put_to_the_test() -> None:
    assert {*DAMAGE, "orphan_rows"} == consistency.CHECKS.keys()


async def test_damage_is_found_by_its_check(store: Store) -> None:
    more = [(check, statement) for check, each in WEBHOOK_DAMAGE.items() for statement in each]
    for check, statement in (*DAMAGE.items(), *more):
        found = await damage(store, statement)
        assert check in {finding.check for finding in found}, statement
        assert not any("{" in finding.text for finding in found)


async def test_rows_without_their_owner_are_found(store: Store) -> None:
    for kind, statement in ORPHANS.items():
        found = await damage(store, statement)
        texts = [finding.text for finding in found if finding.check == "orphan_rows"]
        assert [text for text in texts if text.startswith(kind)], (kind, texts)


async def test_findings_are_bounded(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consistency, "MAX_FINDINGS", 3)
    rows = [(f"led_x{number}", "acc_9", "grant", 0, 0, None, None, 0) for number in range(10)]
    async with store.transaction() as tx:
        await tx.execute_many("ledger.insert", rows)
    async with store.scanning() as tx:
        assert len(await consistency.findings(tx)) == 3
