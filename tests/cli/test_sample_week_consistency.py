"""The sample week does not contradict itself: people judge the product by this data."""

import asyncio
import collections
import dataclasses
import sqlite3
from typing import Any, NamedTuple

import msgspec
import pytest

from postroad import config, context
from postroad.cli.dev import demo_account, sample_week, service
from postroad.cli.framework import data_folder
from postroad.model.units import chart_ranges, times
from postroad.roles import composition
from postroad.services.accounts import account_registry as accounts
from postroad.services.accounts import statistics
from postroad.services.domains import dns_checks as domain_checks
from postroad.services.domains import domain_registry as domains
from postroad.services.messages import lookup, sample_send
from postroad.services.operations import operator_jobs
from postroad.services.webhooks import endpoints
from postroad.storage.mail import domains as stored_domains
from postroad.storage.mail import webhooks

NOW = 1_794_830_400_000_000  # Monday, 2026-11-16 12:00 UTC
RECIPIENTS = """
SELECT recipients.email_key, recipients.status, recipients.last_smtp_response, messages.created_at, messages.sender,
    (SELECT MAX(started_at) FROM attempts WHERE attempts.account_id = recipients.account_id
        AND attempts.message_id = recipients.message_id AND attempts.recipient_id = recipients.id) AS attempted_at
FROM recipients JOIN messages ON messages.account_id = recipients.account_id AND messages.id = recipients.message_id
"""


class Sent(NamedTuple):
    """A recipient of the week."""

    email: str
    status: str
    response: str | None
    accepted_at: int
    sender: str
    attempted_at: int | None


@dataclasses.dataclass(frozen=True)
class Week:
    """What the services say of a written week, and what is stored."""

    overview: statistics.Overview
    guard: accounts.Sending
    findings: list[Any]
    domains: dict[str, tuple[stored_domains.Domain, list[domain_checks.RecordStatus]]]
    senders: list[str]
    webhook: webhooks.Webhook
    retry_seconds: tuple[int, ...]
    found: dict[str, int]
    database: sqlite3.Connection

    @property
    def sent(self) -> list[Sent]:
        return [Sent(*row) for row in self.database.execute(RECIPIENTS)]


@pytest.fixture(scope="module")
def week(tmp_path_factory: pytest.TempPathFactory) -> Any:  # noqa: ANN401 - a generator of one Week
    folder = data_folder.DataFolder(tmp_path_factory.mktemp("week") / "data")
    folder.prepare()
    database = sqlite3.connect(folder.database)
    try:
        yield asyncio.run(_write(folder, database))
    finally:
        database.close()


async def _write(folder: data_folder.DataFolder, database: sqlite3.Connection) -> Week:
    # As in development, all mail leaves through a simulator.
    simulator = config.Upstream(name="simulator", host="127.0.0.1", port=9, tls="off")
    settings = msgspec.structs.replace(folder.settings(environment=service.GUARD_ON), upstreams=(simulator,))
    async with composition.open_context(settings) as opened:
        ctx = dataclasses.replace(opened, clock=lambda: NOW)
        await demo_account.prepare(ctx, None)
        account_id = (await demo_account.account_of(ctx)).id
        assert await sample_week.write(ctx, folder, account_id) is not None
        known = await domains.of_account(ctx, account_id)
        (webhook,) = await endpoints.of_account(ctx, account_id)
        chosen = chart_ranges.of_period(chart_ranges.Period.WEEK, now=NOW)
        return Week(
            overview=await statistics.overview(ctx, account_id, chosen),
            guard=await accounts.sending(ctx, await accounts.find(ctx, account_id)),
            findings=list((await operator_jobs.check_consistency(ctx)).findings),
            domains={one.name: (one, await domain_checks.records(ctx, one)) for one in known},
            senders=await sample_send.senders(ctx, account_id, limit=10),
            webhook=webhook,
            retry_seconds=settings.webhooks.retry_seconds,
            found={status: await _count(ctx, account_id, f"outcome:{status}") for status in ("delivered", "bounced")},
            database=database,
        )


async def _count(ctx: context.Context, account_id: str, text: str) -> int:
    """How many messages the search lists; each has one recipient."""
    found = await lookup.search(ctx, account_id, text, limit=10_000, cursor=None, examined=10_000)
    return len(found.messages)


def test_nothing_is_tried_after_its_address_was_suppressed(week: Week) -> None:
    suppressed = dict(week.database.execute("SELECT email_key, created_at FROM suppressions"))
    assert len(suppressed) > 4
    later = [one for one in week.sent if one.accepted_at > suppressed.get(one.email, NOW)]
    assert later, "the week shows what becomes of such mail"
    assert {(one.status, one.attempted_at) for one in later} == {("bounced", None)}
    assert all("is on the suppression list" in (one.response or "") for one in later)
    tried = [one for one in week.sent if (one.attempted_at or 0) > suppressed.get(one.email, NOW)]
    assert tried == []


def test_an_address_that_does_not_exist_never_got_mail(week: Week) -> None:
    unknown = {
        email
        for (email,) in week.database.execute(
            "SELECT email_key FROM recipients JOIN attempts ON attempts.recipient_id = recipients.id "
            "WHERE attempts.fault = 'address' AND recipients.status = 'bounced'"
        )
    }
    assert len(unknown) > 4
    assert {one.status for one in week.sent if one.email in unknown} == {"bounced"}


def test_charts_lists_guard_and_ledger_agree(week: Week) -> None:
    counted = collections.Counter(one.status for one in week.sent)
    totals = week.overview.totals
    assert (totals.delivered, totals.bounced, totals.failed) == tuple(
        counted[status] for status in ("delivered", "bounced", "failed")
    )
    assert totals.recipients == len(week.sent)
    assert week.overview.queued == len(week.sent) - totals.delivered - totals.bounced - totals.failed
    assert week.found == {"delivered": totals.delivered, "bounced": totals.bounced}
    ended = [one for one in week.sent if one.status in {"delivered", "bounced", "failed"}]
    assert week.guard.recipients == sum(one.attempted_at is not None for one in ended)
    assert week.guard.state == "ok"
    assert week.findings == []


def test_every_final_result_has_its_webhook(week: Week) -> None:
    told = collections.Counter(event for (event,) in week.database.execute("SELECT event_type FROM webhook_deliveries"))
    counted = collections.Counter(f"email.{one.status}" for one in week.sent)
    assert told == {event: count for event, count in counted.items() if event in week.webhook.events.split()}
    assert week.webhook.sender_domains == ""


def test_domains_are_as_their_checks_say_and_only_verified_ones_send(week: Week) -> None:
    verified = {name for name, (domain, _) in week.domains.items() if domain.verified_at is not None}
    assert set(week.domains) - verified == {"outlet.example"}
    assert {one.sender.rpartition("@")[2].rstrip(">") for one in week.sent} <= verified
    assert {sender.partition("@")[2] for sender in week.senders} == verified
    assert week.senders[0] == "hello@shop.example"
    sample = {name: found for name, found in week.domains.items() if name != demo_account.DOMAIN}
    for name, (_, records) in sample.items():
        states = {shown.record.purpose.value: shown.state.value for shown in records}
        assert (states["dkim"] == "ok") == (name in verified)
        for shown in records:
            assert shown.checked_at is not None, (name, shown.record.purpose)
            assert shown.detail != ""
            assert shown.value is not None, (name, shown.record.purpose)
            # In development nothing checks by itself.
            assert "automatically" not in shown.detail


def test_domains_are_older_than_their_mail_and_their_checks(week: Week) -> None:
    created_at = {name: domain.created_at for name, (domain, _) in week.domains.items()}
    for sent in week.sent:
        assert created_at[sent.sender.rpartition("@")[2].rstrip(">")] < sent.accepted_at
    for domain, records in week.domains.values():
        assert all(shown.checked_at is None or shown.checked_at > domain.created_at for shown in records)


def test_what_sent_mail_was_used(week: Week) -> None:
    used = "SELECT name, last_used_at, created_at, COALESCE(revoked_at, ?) FROM {}"
    rows = [row for table in ("credentials", "api_keys") for row in week.database.execute(used.format(table), [NOW])]
    sample = {name: bounds for name, *bounds in rows if name != demo_account.CREDENTIAL_NAME}
    assert set(sample) == {"Shop, production", "Old server", "Checkout", "Reports"}
    for name, (last_used_at, created_at, ended_at) in sample.items():
        assert last_used_at is not None, name
        assert created_at < last_used_at <= ended_at
    for name, source in (("Shop, production", "smtp"), ("Checkout", "api")):
        ((newest,),) = week.database.execute("SELECT MAX(created_at) FROM messages WHERE source = ?", [source])
        assert sample[name][0] == newest


def test_no_cause_contradicts_the_records_of_the_domain(week: Week) -> None:
    refusals = {one.response or "" for one in week.sent if one.status == "bounced"}
    assert len(refusals) > 4
    assert [one for one in refusals if "authenticat" in one or "DMARC" in one] == []


def test_webhooks_were_attempted_by_the_schedule_at_an_endpoint_that_can_say_so(week: Week) -> None:
    schedule = week.retry_seconds
    assert len(schedule) == 6
    deliveries = week.database.execute(
        "SELECT id, url, state, attempt_count, created_at, ended_at FROM webhook_deliveries"
    ).fetchall()
    states = collections.Counter(state for _, _, state, *_ in deliveries)
    assert set(states) == {"succeeded", "failed"}
    assert states["failed"] < states["succeeded"] / 20
    # The built-in endpoint of development has only ever replied 204.
    assert {url for _, url, *_ in deliveries} == {"https://shop.example/hooks/postroad"}
    attempts = collections.defaultdict(list)
    for delivery_id, *attempt in week.database.execute(
        "SELECT delivery_id, number, started_at, duration, status_code FROM webhook_attempts ORDER BY number"
    ):
        attempts[delivery_id].append(attempt)
    for delivery_id, _, state, attempt_count, created_at, ended_at in deliveries:
        made = attempts[delivery_id]
        assert [number for number, *_ in made] == list(range(1, attempt_count + 1))
        assert [code for *_, code in made] == ([500] * (len(schedule) + 1) if state == "failed" else [200])
        assert created_at < made[0][1]
        _, started_at, duration, _ = made[-1]
        assert started_at + duration == ended_at <= NOW
        for (_, before, took, _), (_, after, *_), wait in zip(made, made[1:], schedule, strict=False):
            assert wait * times.SECOND <= after - before - took < 1.5 * wait * times.SECOND


def test_active_users_have_logged_in_and_nothing_ends_as_it_begins(week: Week) -> None:
    people = week.database.execute("SELECT email, created_at, joined_at, last_login_at FROM users").fetchall()
    logins = {email: last_login_at for email, _, joined_at, last_login_at in people if joined_at is not None}
    assert set(logins) == {"demo@example.com", "grace@shop.example", "alan@shop.example"}
    del logins["demo@example.com"]  # whoever has just started the service
    assert all(last_login_at is not None for last_login_at in logins.values())
    logged = {
        email for (email,) in week.database.execute("SELECT subject FROM audit_log WHERE action = 'user.logged_in'")
    }
    assert logged == set(logins)
    ((created_at, revoked_at),) = week.database.execute(
        "SELECT created_at, revoked_at FROM credentials WHERE revoked_at IS NOT NULL"
    )
    assert revoked_at - created_at >= times.DAY
