"""The sample week of `postroad dev`: plausible, consistent, the same every time, written once and nowhere else."""

import collections
import contextlib
import dataclasses
import itertools
import random
import sqlite3
import typing
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest
import pytest_asyncio

from postroad import context
from postroad.cli.dev import demo_account, sample_data, sample_mail, sample_week, service
from postroad.cli.framework import data_folder
from postroad.mail.accept import submit
from postroad.model.mail import send_request, statuses
from postroad.model.people import callers
from postroad.model.units import chart_ranges, times
from postroad.roles import composition
from postroad.services import audit_log
from postroad.services.accounts import account_registry as accounts
from postroad.services.accounts import credits, statistics
from postroad.services.domains import dns_checks as domain_checks
from postroad.services.domains import domain_registry as domains
from postroad.services.messages import lookup
from postroad.services.operations import operator_jobs
from postroad.services.people import api_keys, credentials, users
from postroad.services.suppressions import suppression_list as suppressions
from postroad.services.templates import templates
from postroad.services.webhooks import delivery_log, endpoint_settings, endpoints
from postroad.storage.mail import templates as stored_templates

COUNT = 1_400
BUILT_IN = "http://127.0.0.1:8025/v1/inbox/webhook"
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


@pytest.fixture
def folder(tmp_path: Path) -> data_folder.DataFolder:
    folder = data_folder.DataFolder(tmp_path / "data")
    folder.prepare()
    return folder


@pytest_asyncio.fixture
async def ctx(folder: data_folder.DataFolder) -> AsyncIterator[context.Context]:
    async with composition.open_context(folder.settings(environment=service.WITH_SAMPLE)) as opened:
        yield dataclasses.replace(opened, clock=lambda: NOW)


async def week_of(ctx: context.Context, account_id: str) -> statistics.Overview:
    chosen = chart_ranges.of_period(chart_ranges.Period.WEEK, now=ctx.clock())
    return await statistics.overview(ctx, account_id, chosen)


async def test_a_week_is_written_once_and_everything_agrees(
    ctx: context.Context, folder: data_folder.DataFolder
) -> None:
    await demo_account.prepare(ctx, None)
    account_id = (await demo_account.account_of(ctx)).id
    assert await sample_week.write(ctx, folder, account_id) is not None
    with contextlib.closing(sqlite3.connect(folder.database)) as database:
        sent = [Sent(*row) for row in database.execute(RECIPIENTS)]
        suppressed = dict(database.execute("SELECT email_key, created_at FROM suppressions"))
        told = collections.Counter(event for (event,) in database.execute("SELECT event_type FROM webhook_deliveries"))
        _check_webhooks(database, ctx.settings.webhooks.retry_seconds)
    # The charts, the search and the bounce guard agree with what is stored.
    week = await week_of(ctx, account_id)
    counted = collections.Counter(recipient.status for recipient in sent)
    totals = week.totals
    outcomes = {status: counted[status] for status in ("delivered", "bounced", "failed")}
    assert (totals.delivered, totals.bounced, totals.failed) == tuple(outcomes.values())
    assert (len(sent), sum(outcomes.values()), week.queued) == (
        COUNT + sample_week.WAITING,
        COUNT,
        sample_week.WAITING,
    )
    assert min(totals.delivered, totals.bounced, totals.deferred) > 0
    assert {provider.name for provider in week.providers} == {"google", "microsoft", "yahoo", "apple", "others"}
    for status in ("delivered", "bounced"):
        found = await lookup.search(ctx, account_id, f"outcome:{status}", limit=10_000, cursor=None, examined=10_000)
        assert len(found.messages) == counted[status]
    guard = await accounts.sending(ctx, await accounts.find(ctx, account_id))
    tried = [recipient for recipient in sent if recipient.attempted_at and recipient.status in outcomes]
    assert (guard.state, guard.recipients, guard.complaints, guard.bounces > 0) == ("ok", len(tried), 1, True)
    # Nothing is tried after its address was suppressed.
    listed = await suppressions.page(ctx, account_id, after="", limit=100, source=None)
    assert {"bounce", "complaint", "account", "import"} == {row.source for row in listed}
    later = [recipient for recipient in sent if recipient.accepted_at > suppressed.get(recipient.email, NOW)]
    assert {(recipient.status, recipient.attempted_at) for recipient in later} == {("bounced", None)}
    assert all("is on the suppression list" in (recipient.response or "") for recipient in later)
    assert all((recipient.attempted_at or 0) <= suppressed.get(recipient.email, NOW) for recipient in sent)
    # Every final result has its webhook.
    (webhook,) = await endpoints.of_account(ctx, account_id)
    counts = {f"email.{status}": number for status, number in counted.items()}
    assert told == {event: number for event, number in counts.items() if event in webhook.events.split()}
    # Credits came before the mail that they paid for.
    balances = itertools.accumulate(
        entry.available for entry in reversed(await credits.ledger(ctx, account_id, None, 10_000))
    )
    assert min(balances) >= 0
    # Replies are explained as those of real destinations are.
    for failure in week.failures:
        details = await lookup.details(ctx, account_id, failure.message_id)
        assert all(attempt.reason not in {"", "unknown"} for attempt in details.attempts)
        for attempt in details.attempts:
            if attempt.smtp_code:
                said = details.conversations[attempt.recipient_id, attempt.started_at]
                assert said.endswith(f"S: {attempt.smtp_code} {attempt.response}")
    # A template has a version to go back to.
    receipt = await templates.find(ctx, account_id, "receipt")
    async with ctx.store.reading() as tx:
        versions = await stored_templates.versions(tx, receipt.id, limit=10)
    assert sorted((version.number, version.subject) for version in versions) == [
        (1, "Your receipt, {{order_number}}"),
        (2, "Your receipt for order {{order_number}}"),
    ]
    await _check_domains(ctx, account_id, {recipient.sender.rpartition("@")[2].rstrip(">") for recipient in sent})
    assert (await operator_jobs.check_consistency(ctx)).findings == []
    logged = await audit_log.page(ctx, account_id, before=None, limit=200)
    assert await sample_week.write(ctx, folder, account_id) is None
    assert await week_of(ctx, account_id) == week
    assert await audit_log.page(ctx, account_id, before=None, limit=200) == logged


async def _check_domains(ctx: context.Context, account_id: str, senders: set[str]) -> None:
    """Domains are as their checks say, and only verified ones send."""
    known = await domains.of_account(ctx, account_id)
    verified = {domain.name for domain in known if domain.verified_at is not None}
    assert {domain.name for domain in known} - verified == {"outlet.example"}
    assert senders <= verified
    for domain in known:
        if domain.name == demo_account.DOMAIN:
            continue
        records = await domain_checks.records(ctx, domain)
        states = {shown.record.purpose.value: shown.state.value for shown in records}
        assert (states["dkim"] == "ok") == (domain.name in verified)
        for shown in records:
            assert shown.checked_at is not None, (domain.name, shown.record.purpose)
            assert shown.detail != ""
            # In development nothing checks by itself.
            assert "automatically" not in shown.detail


def _check_webhooks(database: sqlite3.Connection, schedule: Sequence[int]) -> None:
    """Webhooks were attempted by the schedule, at an endpoint that can say so."""
    deliveries = database.execute(
        "SELECT id, url, state, attempt_count, created_at, ended_at FROM webhook_deliveries"
    ).fetchall()
    states = collections.Counter(state for _, _, state, *_ in deliveries)
    assert set(states) == {"succeeded", "failed"}
    assert states["failed"] < states["succeeded"] / 20
    # The built-in endpoint of development has only ever replied 204.
    assert {url for _, url, *_ in deliveries} == {"https://shop.example/hooks/postroad"}
    attempts = collections.defaultdict(list)
    for delivery_id, *attempt in database.execute(
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


async def test_a_week_leaves_what_a_person_has_made_as_it_is(
    ctx: context.Context, folder: data_folder.DataFolder
) -> None:
    """After the first steps of docs/start.md: `webhook listen` has ended, and mail to a large provider waits."""
    await demo_account.prepare(ctx, None)
    account_id = (await demo_account.account_of(ctx)).id
    operator = context.as_operator(ctx)
    listening = await endpoints.save(ctx, account_id, url="http://127.0.0.1:8026/", enabled=False)
    mine = await endpoints.create(ctx, account_id, endpoint_settings.Changes(url="http://127.0.0.1:9000/hook"))
    await domains.add(ctx, account_id, "outlet.example", verified=True)
    await templates.put(ctx, account_id, "receipt", subject="Mine", text="Mine", html=None)
    await users.create(operator, account_id, email="grace@shop.example", password=None, role=callers.Role.ADMIN)
    # A week that an earlier start did not finish.
    await credentials.create(ctx, account_id, sample_week.MARK)
    who = callers.Caller(account_id, None, callers.Scheme.PASSWORD, callers.PASSWORD_PERMISSIONS)
    request = send_request.SendRequest(sender="hello@example.com", to="someone@gmail.com", subject="Hi", text="Hi")
    queued = await submit.submit(ctx, who, request, request_id="req_1", source=statuses.Source.API, key=None)

    async def made_by_hand() -> list[object]:
        return [
            await endpoints.find(ctx, account_id, listening.webhook.id),
            await endpoints.find(ctx, account_id, mine.webhook.id),
            (await delivery_log.page(ctx, account_id, mine.webhook.id, limit=10)).rows,
            await domains.by_name(ctx, account_id, "outlet.example"),
            await templates.find(ctx, account_id, "receipt"),
            await users.by_email(ctx, "grace@shop.example"),
            await lookup.details(ctx, account_id, queued.message_id),
        ]

    before = await made_by_hand()
    assert await sample_week.write(ctx, folder, account_id, count=200, endpoint=BUILT_IN) is not None
    assert await made_by_hand() == before
    week = await week_of(ctx, account_id)
    assert week.totals.messages == 200 + sample_week.WAITING + 1
    urls = sorted(one.url for one in await endpoints.of_account(ctx, account_id))
    assert urls == ["http://127.0.0.1:8025/v1/inbox/webhook", "http://127.0.0.1:8026/", "http://127.0.0.1:9000/hook"]
    assert [one.name for one in await credentials.of_account(ctx, account_id)].count(sample_week.MARK) == 1
    # A person sent just now, and with another key.
    assert all((one.last_used_at or 0) < NOW for one in await api_keys.of_account(ctx, account_id))
    assert (await operator_jobs.check_consistency(ctx)).findings == []
    assert await sample_week.write(ctx, folder, account_id, count=200, endpoint=BUILT_IN) is None
    assert await week_of(ctx, account_id) == week


def drafts(count: int) -> list[sample_mail.Draft]:
    rng = random.Random(sample_mail.SEED)
    who = callers.Caller("acc_1", "cred_1", callers.Scheme.PASSWORD, callers.PASSWORD_PERMISSIONS)
    writer = sample_mail.Writer(typing.cast("context.Context", None), rng, who)  # a draft needs no store
    return [writer.draft(at) for at in sample_mail.moments(rng, count=count, now=NOW)]


def test_the_same_mail_is_written_every_time_with_days_and_nights() -> None:
    week = drafts(1_000)
    assert week == drafts(1_000)
    assert len({times.day_of(one.at) for one in week}) == 7
    assert max(one.at for one in week) < NOW
    hours = collections.Counter(one.at // times.HOUR % 24 for one in week)
    assert hours[9] > 5 * hours[3]
    assert {one.kind.sender for one in week} == {one.sender for one in sample_data.WEEK.kinds}
    assert len({tag for one in week for tag in one.kind.tags}) == 6


def test_pages_and_links_name_the_port_that_was_free(folder: data_folder.DataFolder) -> None:
    listen = {"http": "127.0.0.1:0", "submission": "0.0.0.0:2525", "inbound": "127.0.0.1:2526"}
    settings, bound = service.bind_free_ports(folder.settings(environment={}, listen=listen))
    ((setting, sockets),) = bound.items()
    with contextlib.closing(sockets[0]):
        _, port = sockets[0].getsockname()
        assert (setting, port > 0) == ("http.listen", True)
        assert settings.http.listen == f"127.0.0.1:{port}"
        assert settings.submission.listen == "0.0.0.0:2525"
        assert service.client_url(settings) == f"http://127.0.0.1:{port}"


def test_a_client_on_this_machine_needs_an_address_to_connect_to(folder: data_folder.DataFolder) -> None:
    settings = folder.settings(environment={}, listen={"http": "0.0.0.0:8025"})
    assert service.client_url(settings) == "http://127.0.0.1:8025"


async def test_the_built_in_endpoint_moves_with_the_port(ctx: context.Context) -> None:
    made = await demo_account.prepare(ctx, None, base_url="http://127.0.0.1:8025")
    account_id = (await demo_account.account_of(ctx)).id
    for url in (BUILT_IN, "http://127.0.0.1:9000/hook"):
        await endpoints.create(ctx, account_id, endpoint_settings.Changes(url=url))
    await demo_account.prepare(ctx, made, base_url="http://127.0.0.1:9025")
    urls = {webhook.url for webhook in await endpoints.of_account(ctx, account_id)}
    assert urls == {"http://127.0.0.1:9025/v1/inbox/webhook", "http://127.0.0.1:9000/hook"}


async def test_no_other_store_gets_a_sample_week(ctx: context.Context, folder: data_folder.DataFolder) -> None:
    await demo_account.prepare(ctx, None)
    account_id = (await demo_account.account_of(ctx)).id
    elsewhere = msgspec.structs.replace(ctx.settings.database, url="sqlite:////var/lib/postroad/postroad.sqlite")
    production = dataclasses.replace(ctx, settings=msgspec.structs.replace(ctx.settings, database=elsewhere))
    with pytest.raises(data_folder.FolderError, match="only be written into the database of 'postroad dev'"):
        await sample_week.write(production, folder, account_id)
    assert (await week_of(ctx, account_id)).totals.messages == 0
