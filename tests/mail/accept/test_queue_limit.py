"""The high-water mark: a send is refused while the queue is too long, and accepted again when it is not."""

import asyncio
import contextlib
import itertools
import shutil
from collections.abc import Awaitable, Callable
from typing import Any
from unittest import mock

import msgspec
import pytest

from postroad import config, context, errors
from postroad.mail.accept import queue_limit, submit_batch
from postroad.model.bounces import disposition
from postroad.model.mail import send_request
from postroad.model.units import times
from postroad.roles import composition
from postroad.services.accounts import account_registry
from postroad.services.messages import queue_changes
from postroad.storage.engine.sqlite import SqliteTransaction
from postroad.storage.mail import queue
from postroad.storage.people import accounts
from tests import accepted_mail, contexts
from tests.api import app_server
from tests.contexts import Clock
from tests.services import claimed_mail
from tests.storage import samples


async def looked(known: context.QueueLimit) -> None:
    """Let it read, and wait until it has."""
    mark = contexts.concrete(known, queue_limit.QueueLimit)
    if mark._refreshing is not None:  # what it reads may be from before
        await asyncio.wait([mark._refreshing])
    mark._refresh_at = mark._refresh_near_at = float("-inf")
    with contextlib.suppress(errors.PostroadError):
        mark.check("acc_1", 1, is_test=False)
    assert mark._refreshing is not None
    await asyncio.wait([mark._refreshing])
    mark._refresh_at = mark._refresh_near_at = float("inf")  # not by itself


def change(ctx: context.Context, section: str, **values: int) -> None:
    """Change settings, as a reload does."""
    changed = msgspec.structs.replace(getattr(ctx.settings, section), **values)
    msgspec.structs.force_setattr(ctx.settings, section, changed)


def addresses(count: int) -> tuple[str, ...]:
    return tuple(f"{place}@example.net" for place in range(count))


async def test_a_send_is_refused_while_the_queue_is_over_its_mark(ctx: context.Context, sender: str) -> None:
    change(ctx, "limits", queued_recipients=2)
    first = await accepted_mail.accept(ctx, sender, to=addresses(3), key="k")
    await looked(ctx.queue_limit)
    for account_id in (sender, "acc_other"):
        with pytest.raises(errors.ServiceUnavailable, match="the queue is full: more than 2 recipients") as refusal:
            ctx.queue_limit.check(account_id, 0, is_test=False)
        assert refusal.value.retry_after == 30
    with pytest.raises(errors.ServiceUnavailable, match="the queue is full"):
        await accepted_mail.accept(ctx, sender)
    # What was accepted before is answered as it was then.
    assert await accepted_mail.accept(ctx, sender, to=addresses(3), key="k") == first
    async with ctx.store.transaction() as tx:
        (queue_key,) = await queue.queue_keys(tx, after="", limit=9)
        claimed = await queue.claim(tx, [queue.ClaimRequest(queue_key, 1)], lease_until=0, worker="w")
        await queue.remove(tx, [one.key for one in claimed])
    await looked(ctx.queue_limit)
    await accepted_mail.accept(ctx, sender)


async def test_an_account_that_schedules_without_end_leaves_room_for_others(
    ctx: context.Context, account: accounts.Account, clock: Clock
) -> None:
    other = await account_registry.create(ctx, "Other")
    for account_id, domain in ((account.id, "example.com"), (other.id, "example.org")):
        await accepted_mail.allow_sending(ctx, account_id, domain=domain)
    change(ctx, "limits", queued_recipients=10)
    month = times.to_wire(clock.now + 30 * times.DAY)
    # Test mail costs no credits, so an account could schedule any number.
    await accepted_mail.accept(ctx, account.id, to=addresses(8), send_at=month, is_test=True)
    await looked(ctx.queue_limit)
    await accepted_mail.accept(ctx, account.id, send_at=month, is_test=True)
    await looked(ctx.queue_limit)
    for is_test in (True, False):
        with pytest.raises(errors.ServiceUnavailable, match="this account's share of the queue is full: 9 of its"):
            await accepted_mail.accept(ctx, account.id, is_test=is_test)
    await accepted_mail.accept(ctx, other.id, sender="shop@example.org")


async def test_it_does_not_look_again_at_once(ctx: context.Context) -> None:
    await looked(ctx.queue_limit)
    mark = contexts.concrete(ctx.queue_limit, queue_limit.QueueLimit)
    before = mark._refreshing
    ctx.queue_limit.check("acc_1", 0, is_test=False)
    assert mark._refreshing is before


async def test_a_store_that_is_away_changes_nothing(ctx: context.Context, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_: object) -> bool:
        raise errors.ServiceUnavailable("away", retry_after=1)

    monkeypatch.setattr(queue, "totals_by_account", fail)
    await looked(ctx.queue_limit)
    ctx.queue_limit.check("acc_1", 0, is_test=False)


MEGABYTE = "x" * 1_000_000


TEST_MAIL_FULL = (
    "test mail of this account uses 4.8 of 5 MiB; it is deleted 3 days after its final status; nothing was accepted"
)
QUEUED_MAIL_FULL = (
    "queued and scheduled mail of this account uses 2.9 of 3 MiB; cancel scheduled messages, or wait for delivery; "
    "nothing was accepted"
)


async def flood(ctx: context.Context, account_id: str, *, is_test: bool) -> tuple[list[str], errors.PostroadError]:
    """Schedule messages of a megabyte until one is refused."""
    accepted: list[str] = []
    month = times.to_wire(ctx.clock() + 29 * times.DAY)
    while len(accepted) < 12:
        try:
            accepted.append(await accepted_mail.accept(ctx, account_id, text=MEGABYTE, send_at=month, is_test=is_test))
        except errors.PostroadError as refusal:
            return accepted, refusal
    raise AssertionError("nothing is refused")


async def test_a_test_key_cannot_fill_the_disk_with_scheduled_mail(
    ctx: context.Context,
    sender: str,
    settings: config.Settings,
    clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(queue_limit, "TEST_MEGABYTES", 5)
    await looked(ctx.queue_limit)
    accepted, refusal = await flood(ctx, sender, is_test=True)
    assert len(accepted) == 5  # each is 1,000,000 bytes and 1 KiB for its recipient, of 5,242,880
    assert (refusal.status, refusal.code, refusal.message) == (429, "rate_limited", TEST_MAIL_FULL)
    assert (refusal.smtp_reply, refusal.retry_after) == ("452 4.3.1", 3600)
    await looked(ctx.queue_limit)
    await looked(ctx.queue_limit)
    assert (await flood(ctx, sender, is_test=True))[0] == []
    # Canceled mail is still stored.
    for message_id in accepted:
        await queue_changes.cancel_message(ctx, sender, message_id)
    await looked(ctx.queue_limit)
    assert (await flood(ctx, sender, is_test=True))[0] == []
    # Live mail of the account goes on, and so does the test mail of others.
    await accepted_mail.accept(ctx, sender, text=MEGABYTE)
    ctx.queue_limit.check("acc_other", 5_000_000, is_test=True)
    # Another process knows as soon as it has read.
    async with composition.open_context(settings, clock=clock) as second:
        await looked(second.queue_limit)
        assert (await flood(second, sender, is_test=True))[0] == []


async def test_queued_mail_has_a_quota_until_it_is_delivered_or_canceled(ctx: context.Context, sender: str) -> None:
    change(ctx, "quotas", stored_megabytes=3)
    await looked(ctx.queue_limit)
    # One megabyte, and not two: a message is stored once for all its recipients.
    first = await accepted_mail.accept(ctx, sender, text=MEGABYTE, to=addresses(2), key="k")
    await looked(ctx.queue_limit)
    await looked(ctx.queue_limit)
    accepted, refusal = await flood(ctx, sender, is_test=False)
    assert len(accepted) == 2
    assert (refusal.status, refusal.code, refusal.message) == (429, "rate_limited", QUEUED_MAIL_FULL)
    assert refusal.retry_after == 30
    # What was accepted before is answered as it was then.
    assert await accepted_mail.accept(ctx, sender, text=MEGABYTE, to=addresses(2), key="k") == first
    await accepted_mail.accept(ctx, sender, text=MEGABYTE, is_test=True)
    for message_id in (first, *accepted):
        await queue_changes.cancel_message(ctx, sender, message_id)
    # The first read may have missed what was let in shortly before.
    await looked(ctx.queue_limit)
    await looked(ctx.queue_limit)
    assert len((await flood(ctx, sender, is_test=False))[0]) == 3


async def test_a_message_that_never_fits_is_not_to_be_tried_again(
    ctx: context.Context, sender: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue_limit, "TEST_MEGABYTES", 1)
    with pytest.raises(errors.PayloadTooLarge) as refusal:
        await accepted_mail.accept(ctx, sender, text=MEGABYTE + MEGABYTE, is_test=True)
    assert refusal.value.message == "the message is larger than the storage quota of 1 MiB"
    await accepted_mail.accept(ctx, sender, text=MEGABYTE, is_test=True)


async def test_a_batch_stops_at_the_quota(ctx: context.Context, sender: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue_limit, "TEST_MEGABYTES", 2)
    await looked(ctx.queue_limit)
    item = {"from": "shop@example.com", "to": "ada@example.net", "subject": "Your order", "text": MEGABYTE}
    request = msgspec.convert({"emails": [item] * 4}, send_request.BatchRequest)
    who = accepted_mail.caller_of(sender, is_test=True)
    accepted = await submit_batch.submit_batch(ctx, who, request, request_id="req_" + "0" * 28, key="k")
    assert accepted.refused == ("rate_limited", "rate_limited")


async def test_what_is_let_in_while_it_reads_is_not_forgotten(ctx: context.Context) -> None:
    change(ctx, "quotas", stored_megabytes=1)
    mark = contexts.concrete(ctx.queue_limit, queue_limit.QueueLimit)
    mark.check("acc_1", 500_000, is_test=False)
    assert mark._refreshing is not None
    mark.check("acc_1", 500_000, is_test=False)
    await asyncio.wait([mark._refreshing])
    with pytest.raises(queue_limit.QuotaExceeded):
        mark.check("acc_1", 500_000, is_test=False)


def has_disk(monkeypatch: pytest.MonkeyPatch, *, free: float, total: float = 1000) -> None:
    """A file system of so many megabytes."""
    sizes = round(total * 1_000_000), round((total - free) * 1_000_000), round(free * 1_000_000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _folder: shutil._ntuple_diskusage(*sizes))


# The disk of a PostgreSQL server is not visible.
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_a_disk_that_fills_up_is_closed_to_the_largest_account_first(
    ctx: context.Context, account: accounts.Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = await account_registry.create(ctx, "Other")
    for account_id, domain in ((account.id, "example.com"), (other.id, "example.org")):
        await accepted_mail.allow_sending(ctx, account_id, domain=domain)
    change(ctx, "limits", min_free_megabytes=1024)  # of which a tenth of the disk is used: 100 megabytes
    has_disk(monkeypatch, free=300)
    accepted = [await accepted_mail.accept(ctx, account.id, text=MEGABYTE, key=str(number)) for number in range(8)]
    await accepted_mail.accept(ctx, other.id, sender="shop@example.org")
    await looked(ctx.queue_limit)
    await accepted_mail.accept(ctx, account.id)
    # Eight megabytes are more than four times what is left.
    has_disk(monkeypatch, free=101.5)
    await looked(ctx.queue_limit)
    for is_test in (False, True):
        with pytest.raises(errors.ServiceUnavailable, match="and mail of this account takes 7 MiB") as refusal:
            await accepted_mail.accept(ctx, account.id, is_test=is_test)
        assert (refusal.value.status, refusal.value.smtp_reply) == (503, "452 4.3.1")
        assert refusal.value.retry_after == 30
    assert await accepted_mail.accept(ctx, account.id, text=MEGABYTE, key="0") == accepted[0]
    await accepted_mail.accept(ctx, other.id, sender="shop@example.org")
    # Nor may anybody take what is left at once.
    with pytest.raises(errors.ServiceUnavailable, match="is almost full"):
        ctx.queue_limit.check("acc_other", 2_000_000, is_test=False)
    has_disk(monkeypatch, free=100)
    await looked(ctx.queue_limit)
    for account_id, sender in ((account.id, "shop@example.com"), (other.id, "shop@example.org")):
        with pytest.raises(errors.ServiceUnavailable, match="the disk of this service is almost full"):
            await accepted_mail.accept(ctx, account_id, sender=sender)
    has_disk(monkeypatch, free=300)
    await looked(ctx.queue_limit)
    await accepted_mail.accept(ctx, account.id)


# The disk of a PostgreSQL server is not visible.
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_mail_that_is_refused_for_the_disk_is_logged_once_and_when_it_is_over(
    ctx: context.Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    change(ctx, "limits", min_free_megabytes=1024)  # of which a tenth of the disk is used: 100 megabytes
    lines = app_server.CapturedLog()
    mark = queue_limit.QueueLimit(ctx.store, ctx.settings, ctx.clock, lines.logger())
    for free in (300, 150, 140, 99, 98, 150, 300, 300, 99, 300):
        has_disk(monkeypatch, free=free)
        await looked(mark)
    assert [(line["level"], line["event"]) for line in lines.kept] == [
        ("warning", "disk_short"),
        ("warning", "disk_full"),
        ("warning", "disk_short"),
        ("info", "disk_recovered"),
        ("warning", "disk_full"),
        ("info", "disk_recovered"),
    ]
    short = lines.kept[0]
    assert 150_000_000 <= short["free_bytes"] < 160_000_000  # with the free pages of the file
    assert short["minimum_bytes"] == 100_000_000


# The disk of a PostgreSQL server is not visible.
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_after_a_restart_below_the_minimum_nothing_is_accepted(
    ctx: context.Context, settings: config.Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = msgspec.structs.replace(settings.limits, min_free_megabytes=1024)
    has_disk(monkeypatch, free=90)
    lines = app_server.CapturedLog()
    small = msgspec.structs.replace(settings, limits=limits)
    async with composition.open_context(small, clock=ctx.clock, log=lines.logger()) as restarted:
        await restarted.queue_limit.read_disk()
        for _ in range(2):
            with pytest.raises(queue_limit.DiskFull, match="the disk of this service is almost full"):
                restarted.queue_limit.check("acc_1", 1_000, is_test=False)
    assert "disk_full" in [line["event"] for line in lines.kept]


SUM = "hourly_counts.bytes_by_account"


async def queries(work: Awaitable[object]) -> list[str]:
    """The names of the statements that it runs."""
    names: list[str] = []

    run = SqliteTransaction._run

    def noted(self: SqliteTransaction, execute: Callable[..., Any], query: str, *more: Any, **named: Any) -> object:
        names.append(query)
        return run(self, execute, query, *more, **named)

    with mock.patch.object(SqliteTransaction, "_run", noted):
        await work
    return names


# The disk of a PostgreSQL server is not visible.
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_mail_that_waits_no_longer_counts_while_its_content_fills_the_disk(
    ctx: context.Context, account: accounts.Account, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = await account_registry.create(ctx, "Other")
    for account_id, domain in ((account.id, "example.com"), (other.id, "example.org")):
        await accepted_mail.allow_sending(ctx, account_id, domain=domain)
    change(ctx, "limits", min_free_megabytes=1024)  # of which a tenth of the disk is used: 100 megabytes
    month = times.to_wire(clock.now + 29 * times.DAY)
    for number in range(4):
        canceled = await accepted_mail.accept(ctx, account.id, text=MEGABYTE, send_at=month)
        await queue_changes.cancel_message(ctx, account.id, canceled)
        await accepted_mail.accept(ctx, account.id, text=MEGABYTE, to=(f"{number}@example.net",))
    await accepted_mail.accept(ctx, other.id, sender="shop@example.org")
    claims = await claimed_mail.claim_all(ctx, claimed_mail.WORKER)
    assert len(claims) == 5
    ends = itertools.cycle([disposition.Verdict.DELIVERED, disposition.Verdict.BOUNCED])
    await ctx.outcome_commits.submit([claimed_mail.outcome(ctx, one, next(ends)) for one in claims])
    assert await samples.count(ctx.store, "queue") == 0
    # While twice the minimum is free, it does not count, and nobody asks for it.
    has_disk(monkeypatch, free=210)
    assert SUM not in await queries(looked(ctx.queue_limit))
    usual = await queries(accepted_mail.accept(ctx, account.id))
    # Eight megabytes are more than four times what is left.
    has_disk(monkeypatch, free=101.5)
    assert SUM in await queries(looked(ctx.queue_limit))
    refused = "the disk of this service is filling up, and mail of this account takes 7 MiB of it"
    for is_test in (False, True):
        with pytest.raises(errors.ServiceUnavailable, match=refused) as refusal:
            await accepted_mail.accept(ctx, account.id, is_test=is_test)
        assert (refusal.value.status, refusal.value.smtp_reply) == (503, "452 4.3.1")
    # The other account goes on, with the same statements.
    assert await queries(accepted_mail.accept(ctx, other.id, sender="shop@example.org")) == usual
    # Contents are deleted after their days.
    clock.now += (ctx.settings.retention.body_days + 1) * times.DAY
    await looked(ctx.queue_limit)
    await accepted_mail.accept(ctx, account.id)


# The disk of a PostgreSQL server is not visible.
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_free_pages_of_the_database_are_free_space(
    ctx: context.Context, sender: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    change(ctx, "limits", min_free_megabytes=1024)
    for number in range(4):
        await accepted_mail.accept(ctx, sender, text=MEGABYTE, key=str(number))
    has_disk(monkeypatch, free=99)
    await looked(ctx.queue_limit)
    with pytest.raises(errors.ServiceUnavailable):
        await accepted_mail.accept(ctx, sender)
    async with ctx.store.transaction() as tx:
        await tx.run_script("DELETE FROM bodies; DELETE FROM queue;")
    await looked(ctx.queue_limit)
    await looked(ctx.queue_limit)
    await accepted_mail.accept(ctx, sender)


async def test_without_a_minimum_the_disk_is_not_read(ctx: context.Context, monkeypatch: pytest.MonkeyPatch) -> None:
    has_disk(monkeypatch, free=0)
    await looked(ctx.queue_limit)
    ctx.queue_limit.check("acc_1", 1_000, is_test=False)
