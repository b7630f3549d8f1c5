"""A scheduled message on both engines: how it waits, that it can be moved, and until when."""

import asyncio
import dataclasses
import re
from typing import Any

import pytest

from postroad import context, errors
from postroad.model.bounces import disposition
from postroad.model.people import callers
from postroad.model.units import times
from postroad.services import audit_log
from postroad.services.messages import lookup as messages
from postroad.services.messages import queue_changes, queue_inspection
from postroad.services.operations import operator_jobs
from postroad.storage.mail import messages as stored_messages
from postroad.storage.mail import queue, queue_views
from tests import accepted_mail, queue_steps
from tests.contexts import SECOND, Clock
from tests.services import claimed_mail

HOUR = 3_600 * SECOND
ALL = queue_views.Filter()


async def scheduled(ctx: context.Context, account_id: str, **fields: Any) -> str:
    """A message that is sent in an hour."""
    return await accepted_mail.accept(ctx, account_id, send_at=times.to_wire(ctx.clock() + HOUR), **fields)


async def claims(ctx: context.Context) -> list[queue.Claimed]:
    async with ctx.store.transaction() as tx:
        await queue.promote(tx, now=ctx.clock(), limit=10)
    return await claimed_mail.claim_all(ctx, "w1")


async def states(ctx: context.Context) -> list[tuple[str, str]]:
    found = await queue_inspection.overview(ctx, ALL, state=None, limit=9)
    return [(line.waiting.state, line.why) for line in found.entries]


async def test_it_is_shown_as_scheduled_until_its_time(ctx: context.Context, shop: str, clock: Clock) -> None:
    message_id = await scheduled(ctx, shop)
    assert await states(ctx) == [("scheduled", "scheduled by the sender; next attempt at 2027-01-15 09:00:00 UTC")]
    (entry,) = (await queue_inspection.entries_of_message(ctx, shop, message_id)).values()
    assert (entry.reason.code, entry.reason.text) == ("scheduled", "scheduled by the sender")
    found = await queue_inspection.overview(ctx, ALL, state="waiting", limit=9)
    assert (found.entries, {state: count.recipients for state, count in found.counts.items()}) == ([], {"scheduled": 1})
    clock.pass_seconds(3_600)
    (claim,) = await claims(ctx)
    await queue_steps.defer(ctx, claim.key)  # with another worker's name: it changes nothing
    assert [state for state, _ in await states(ctx)] == ["sending"]


async def test_a_retry_does_not_send_it_early(ctx: context.Context, shop: str) -> None:
    message_id = await scheduled(ctx, shop)
    with pytest.raises(errors.Conflict, match="the message is scheduled; change its send_at to send it earlier"):
        await queue_inspection.retry_of_account(ctx, shop, message_id, None)
    assert (await queue_inspection.retry(ctx, [ALL])).changed == 0
    assert await claims(ctx) == []


async def test_it_moves_with_its_expiry(ctx: context.Context, shop: str, clock: Clock) -> None:
    message_id = await scheduled(ctx, shop, expires_in=90)
    later = clock.now + 24 * HOUR
    moved = await queue_changes.reschedule(ctx, shop, message_id, later)
    assert (moved.send_at, moved.expires_at) == (later, later + 90 * SECOND)
    message, (recipient,) = await messages.find(ctx, shop, message_id)
    assert (message, recipient.status) == (moved, "queued")
    clock.pass_seconds(23 * 3_600)
    assert await claims(ctx) == []
    clock.pass_seconds(3_600)
    (claim,) = await claims(ctx)
    assert (claim.queued_at, claim.expires_at) == (later, later + 90 * SECOND)


async def test_its_date_is_the_time_of_sending(ctx: context.Context, shop: str, clock: Clock) -> None:
    message_id = await scheduled(ctx, shop, text="\r\nDate: Fri, 15 Jan 2027 09:00:00 +0000\r\n", headers={"X-Z": "1"})

    async def dates() -> list[bytes]:
        return re.findall(rb"^Date: (.*)\r$", await messages.raw(ctx, shop, message_id), re.MULTILINE)

    quoted = b"Fri, 15 Jan 2027 09:00:00 +0000"  # in the text, the same as the first one
    assert await dates() == [quoted, quoted]
    await queue_changes.reschedule(ctx, shop, message_id, clock.now + 24 * HOUR)
    assert await dates() == [b"Sat, 16 Jan 2027 08:00:00 +0000", quoted]
    await queue_changes.reschedule(ctx, shop, message_id, None)
    assert await dates() == [b"Fri, 15 Jan 2027 08:00:00 +0000", quoted]
    assert (await operator_jobs.check_consistency(ctx)).findings == []


@pytest.mark.parametrize("mime", [b"Date: Mon, 01 Jan 2024 00:00:00 +0000\r\n\r\nHi\n.", b"Subject: x\r\n\r\n", b"x"])
async def test_a_date_of_the_senders_own_stays(ctx: context.Context, shop: str, mime: bytes) -> None:
    message_id = await scheduled(ctx, shop)
    async with ctx.store.transaction() as tx:
        await stored_messages.replace_body(tx, shop, message_id, mime)
    await queue_changes.reschedule(ctx, shop, message_id, None)
    assert await messages.raw(ctx, shop, message_id) == mime


@pytest.mark.parametrize("seconds_ago", [None, 0, 59])
async def test_it_can_be_sent_now(ctx: context.Context, shop: str, clock: Clock, seconds_ago: int | None) -> None:
    message_id = await scheduled(ctx, shop, expires_in=90)
    clock.pass_seconds(60)
    send_at = None if seconds_ago is None else clock.now - seconds_ago * SECOND
    message = await queue_changes.reschedule(ctx, shop, message_id, send_at)
    assert (message.send_at, message.expires_at) == (clock.now, clock.now + 90 * SECOND)
    assert [one.queued_at for one in await claimed_mail.claim_all(ctx, "w1")] == [clock.now]
    assert ctx.mail_wakeup.is_set()


async def test_a_bad_time_moves_nothing(ctx: context.Context, shop: str, clock: Clock) -> None:
    message_id = await scheduled(ctx, shop)
    before = await messages.find(ctx, shop, message_id)
    for send_at in (clock.now - 61 * SECOND, clock.now + 31 * 24 * HOUR):
        with pytest.raises(errors.InvalidRequest, match="send_at: "):
            await queue_changes.reschedule(ctx, shop, message_id, send_at)
    assert await messages.find(ctx, shop, message_id) == before
    assert await claims(ctx) == []


async def test_what_was_not_scheduled_has_begun_or_has_ended_stays(
    ctx: context.Context, shop: str, clock: Clock
) -> None:
    plain = await accepted_mail.accept(ctx, shop, expires_in=90)
    begun = await scheduled(ctx, shop, to=("ada@example.net", "bob@example.org"))
    ended = await scheduled(ctx, shop)
    await queue_changes.cancel_message(ctx, shop, ended)
    clock.pass_seconds(3_600)
    await claims(ctx)
    for message_id, sentence in (
        (plain, "was not scheduled"),
        (begun, "an attempt has begun"),
        (ended, "has a final result"),
    ):
        with pytest.raises(errors.Conflict, match=sentence):
            await queue_changes.reschedule(ctx, shop, message_id, None)
    assert (await operator_jobs.check_consistency(ctx)).findings == []


async def test_a_message_is_either_moved_or_claimed(ctx: context.Context, shop: str, clock: Clock) -> None:
    """Both at once, several times, when it is due."""
    for _ in range(5):
        message_id = await scheduled(ctx, shop)
        clock.pass_seconds(3_600)
        moved, claimed = await asyncio.gather(
            queue_changes.reschedule(ctx, shop, message_id, clock.now + HOUR), claims(ctx), return_exceptions=True
        )
        assert isinstance(claimed, list)
        assert isinstance(moved, errors.Conflict) == (len(claimed) == 1)
        message, _ = await messages.find(ctx, shop, message_id)
        assert message.send_at == (clock.now if claimed else clock.now + HOUR)
        for claim in claimed:
            await ctx.outcome_commits.submit([claimed_mail.outcome(ctx, claim, disposition.Verdict.DELIVERED)])
        await queue_changes.cancel_message(ctx, shop, message_id)


async def test_a_clock_that_jumps_sends_nothing_twice_and_nothing_early(
    ctx: context.Context, shop: str, clock: Clock
) -> None:
    message_id = await scheduled(ctx, shop)
    clock.pass_seconds(-7_200)  # back: it waits for its own time
    assert await claims(ctx) == []
    assert [state for state, _ in await states(ctx)] == ["scheduled"]
    clock.pass_seconds(30 * 86_400)  # ahead: it is due, once
    assert len(await claims(ctx)) == 1
    assert await claims(ctx) == []
    with pytest.raises(errors.Conflict, match="an attempt has begun"):
        await queue_changes.reschedule(ctx, shop, message_id, None)


async def test_what_a_user_does_is_in_the_audit_log(ctx: context.Context, shop: str, clock: Clock) -> None:
    message_id = await scheduled(ctx, shop)
    acting = dataclasses.replace(ctx, actor=callers.Actor(callers.ActorKind.PERSON, "usr_1", "req_1", "192.0.2.1"))
    clock.pass_seconds(1)
    await queue_changes.reschedule(acting, shop, message_id, clock.now + HOUR)
    clock.pass_seconds(1)
    await queue_changes.cancel_message(acting, shop, message_id)
    entries = await audit_log.page(ctx, shop, before=None, limit=2)
    assert [(one.action, one.subject, one.detail) for one in entries] == [
        ("message.canceled", message_id, ""),
        ("message.rescheduled", message_id, times.to_wire(clock.now - SECOND + HOUR)),
    ]
