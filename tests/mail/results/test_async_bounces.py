"""Asynchronous bounces: matched by token, kept once, and without any effect on what is final or on anybody else."""

import asyncio
import dataclasses

import msgspec
import pytest

from postroad import context
from postroad.mail import return_path
from postroad.mail.results import async_bounces
from postroad.model.mail import statuses
from postroad.services.messages import lookup as messages
from postroad.storage.mail import attempts as stored
from postroad.storage.mail import suppressions
from tests import accepted_mail, reports

ReportResult = async_bounces.ReportResult


@pytest.fixture
async def message_id(ctx: context.Context, sender: str) -> str:
    """A message with two recipients, both delivered."""
    message_id = await accepted_mail.accept(ctx, sender, to=("Ada@example.net", "bob@example.net"))
    await reports.settle(ctx)
    return message_id


async def receive(
    ctx: context.Context, message_id: str, content: bytes, *, who: str = reports.ADA
) -> list[ReportResult]:
    named = await reports.named(ctx, message_id, who)
    return [each.result for each in (await async_bounces.receive(ctx, named, content)).handled]


async def kept_of(ctx: context.Context, account_id: str, message_id: str) -> list[stored.AsyncBounce]:
    async with ctx.store.reading() as tx:
        return await stored.async_bounces(tx, account_id, message_id)


async def suppressed(ctx: context.Context, account_id: str) -> list[suppressions.Suppression]:
    async with ctx.store.reading() as tx:
        return await suppressions.of_account(tx, account_id, after="", limit=10)


async def test_a_failure_is_kept_and_its_address_left_alone(ctx: context.Context, sender: str, message_id: str) -> None:
    before = await messages.find(ctx, sender, message_id)
    received = await async_bounces.receive(
        ctx, await reports.named(ctx, message_id), reports.report(reports.group("ada@EXAMPLE.net"))
    )
    (handled,) = received.handled
    assert (handled.result, handled.is_gone) == (ReportResult.RECORDED, True)
    (kept,) = await kept_of(ctx, sender, message_id)
    assert handled.recipient is not None
    assert (kept.recipient_id, kept.received_at) == (handled.recipient.id, ctx.clock())
    assert (kept.action, kept.status, kept.fault) == ("failed", "5.1.1", "address")
    assert kept.response == "550 5.1.1 no such user"
    assert await suppressed(ctx, sender) == [
        suppressions.Suppression(
            sender, "ada@example.net", "late_bounce", "550 5.1.1 no such user", 550, message_id, ctx.clock()
        )
    ]
    assert await messages.find(ctx, sender, message_id) == before


async def test_the_same_report_twice_is_one(ctx: context.Context, sender: str, message_id: str) -> None:
    content = reports.report(
        reports.group("ada@example.net"), reports.group("ada@example.net", status="5.2.2", words="full")
    )
    assert await receive(ctx, message_id, content) == [ReportResult.RECORDED] * 2
    again = (await async_bounces.receive(ctx, await reports.named(ctx, message_id), content)).handled
    assert [(each.result, each.is_gone) for each in again] == [
        (ReportResult.REPEATED, True),
        (ReportResult.REPEATED, False),
    ]
    assert len(await kept_of(ctx, sender, message_id)) == 2


async def test_the_same_report_at_the_same_time_is_one(ctx: context.Context, sender: str, message_id: str) -> None:
    content = reports.report(reports.group("ada@example.net"))
    fates = await asyncio.gather(*[receive(ctx, message_id, content) for _ in range(4)])
    assert sorted(fates) == [
        [ReportResult.RECORDED],
        [ReportResult.REPEATED],
        [ReportResult.REPEATED],
        [ReportResult.REPEATED],
    ]
    assert len(await kept_of(ctx, sender, message_id)) == 1


async def test_other_words_are_another_report_up_to_a_bound(ctx: context.Context, sender: str, message_id: str) -> None:
    fates = []
    for number in range(11):
        fates += await receive(ctx, message_id, reports.report(reports.group("ada@example.net", words=f"no {number}")))
    assert fates == [ReportResult.RECORDED] * 10 + [ReportResult.TOO_MANY]
    content = reports.report(reports.group("bob@example.net"))
    assert await receive(ctx, message_id, content, who="bob@example.net") == [ReportResult.RECORDED]
    kept = await kept_of(ctx, sender, message_id)
    assert len({bounce.received_at for bounce in kept}) == 11


async def test_what_was_said_before_is_not_counted_again(ctx: context.Context, message_id: str) -> None:
    same = [reports.group("ada@example.net")] * 11
    content = reports.report(*same, reports.group("ada@example.net", words="really"))
    assert await receive(ctx, message_id, content) == [
        ReportResult.RECORDED,
        *[ReportResult.REPEATED] * 10,
        ReportResult.RECORDED,
    ]


async def test_only_an_address_that_does_not_exist_is_left_alone(
    ctx: context.Context, sender: str, message_id: str
) -> None:
    for code, status, words in (
        (552, "5.2.2", "mailbox full"),
        (550, "5.7.1", "blocked by policy"),
        (450, "4.1.1", "user unknown, try later"),
    ):
        content = reports.report(reports.group("ada@example.net", code=code, status=status, words=words))
        assert await receive(ctx, message_id, content) == [ReportResult.RECORDED]
    assert await suppressed(ctx, sender) == []


async def test_no_address_is_left_alone_when_the_operator_does_not_want_it(
    ctx: context.Context, sender: str, message_id: str
) -> None:
    testing = msgspec.structs.replace(ctx.settings.testing, suppress=False)
    other = dataclasses.replace(ctx, settings=msgspec.structs.replace(ctx.settings, testing=testing))
    assert await receive(other, message_id, reports.report(reports.group("ada@example.net"))) == [ReportResult.RECORDED]
    assert await suppressed(ctx, sender) == []


async def test_a_forwarding_address_is_kept_but_ours_stays(ctx: context.Context, sender: str, message_id: str) -> None:
    forwarded = reports.group("somebody@example.org") + "\nOriginal-Recipient: rfc822;ada@example.net"
    (handled,) = (
        await async_bounces.receive(ctx, await reports.named(ctx, message_id), reports.report(forwarded))
    ).handled
    assert (handled.result, handled.is_gone) == (ReportResult.RECORDED, False)
    assert handled.recipient is not None
    assert handled.recipient.email_key == "ada@example.net"
    assert await suppressed(ctx, sender) == []


async def test_what_is_no_failure_is_kept_nowhere(ctx: context.Context, sender: str, message_id: str) -> None:
    for action in ("delayed", "relayed", "expanded", "delivered"):
        content = reports.report(reports.group("ada@example.net", action=action))
        assert await receive(ctx, message_id, content) == [ReportResult.NOT_A_FAILURE]
    assert await kept_of(ctx, sender, message_id) == []
    mixed = reports.report(reports.group("ada@example.net", action="delayed"), reports.group("ada@example.net"))
    assert await receive(ctx, message_id, mixed) == [ReportResult.NOT_A_FAILURE, ReportResult.RECORDED]
    assert len(await kept_of(ctx, sender, message_id)) == 1


@pytest.mark.parametrize("status", [statuses.RecipientStatus.QUEUED, statuses.RecipientStatus.DEFERRED])
async def test_a_recipient_that_is_still_on_its_way_keeps_nothing(
    ctx: context.Context, sender: str, message_id: str, status: statuses.RecipientStatus
) -> None:
    await reports.settle(ctx, status)
    assert await receive(ctx, message_id, reports.report(reports.group("ada@example.net"))) == [ReportResult.NOT_FINAL]
    assert await kept_of(ctx, sender, message_id) == []
    assert await suppressed(ctx, sender) == []


async def test_a_report_says_nothing_about_anybody_but_the_recipient_of_its_token(
    ctx: context.Context, sender: str, message_id: str
) -> None:
    for who in ("bob@example.net", "eve@example.net"):
        assert await receive(ctx, message_id, reports.report(reports.group(who))) == [ReportResult.UNKNOWN_RECIPIENT]
    assert await kept_of(ctx, sender, message_id) == []
    everybody = reports.report(reports.group("bob@example.net"), reports.group("ada@example.net"))
    assert await receive(ctx, message_id, everybody) == [ReportResult.UNKNOWN_RECIPIENT, ReportResult.RECORDED]
    assert [row.email_key for row in await suppressed(ctx, sender)] == ["ada@example.net"]


async def test_a_report_about_a_message_that_is_gone_is_kept_nowhere(ctx: context.Context) -> None:
    gone = return_path.ReturnPath("em_" + "0" * 28, "0000")
    (handled,) = (await async_bounces.receive(ctx, gone, reports.report(reports.group("ada@example.net")))).handled
    assert handled.result == ReportResult.UNKNOWN_MESSAGE


async def test_a_report_that_names_nobody_means_the_recipient_of_its_token(
    ctx: context.Context, sender: str, message_id: str
) -> None:
    nobody = reports.report("Action: failed\nStatus: 5.1.1")
    assert await receive(ctx, message_id, nobody) == [ReportResult.RECORDED]
    assert [row.email_key for row in await suppressed(ctx, sender)] == ["ada@example.net"]


async def test_a_name_in_another_script_is_recognised(ctx: context.Context, sender: str) -> None:
    message_id = await accepted_mail.accept(ctx, sender, to=("ada@bücher.example", "bob@example.net"))
    await reports.settle(ctx)
    for written in ("ada@bücher.example", "ADA@xn--bcher-kva.example"):
        content = reports.report(reports.group(written, words=written))
        fates = await receive(ctx, message_id, content, who="ada@xn--bcher-kva.example")
        assert fates == [ReportResult.RECORDED]


async def test_mail_that_is_no_report_is_nothing(ctx: context.Context, message_id: str) -> None:
    for content in (b"", b"Subject: Out of office\n\nI am away.\n", b"\0\xff"):
        assert await receive(ctx, message_id, content) == []


async def test_words_that_no_store_could_keep_are_kept_without_what_is_wrong(
    ctx: context.Context, sender: str, message_id: str
) -> None:
    content = reports.report(reports.group("ada@example.net", words="no\0such\x1buser ")).replace(
        b"user", b"user \xff\xfe"
    )
    assert await receive(ctx, message_id, content) == [ReportResult.RECORDED]
    (kept,) = await kept_of(ctx, sender, message_id)
    assert kept.response.startswith("550 5.1.1 no such user")
