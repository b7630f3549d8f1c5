"""Complaints: matched by a token that cannot be forged, kept once, counted, and their recipients suppressed."""

import asyncio
import dataclasses
from collections.abc import AsyncIterator

import msgspec
import pytest

from postroad import context
from postroad.mail.results import async_bounces, complaints
from postroad.model.bounces.bounce_guard import Counts, Level, Trigger
from postroad.model.mail import statuses
from postroad.protocol.reports import arf
from postroad.services.accounts import account_registry as accounts
from postroad.services.messages import lookup as messages
from postroad.services.operations import cleanup
from postroad.storage.mail import attempts as stored_reports
from postroad.storage.mail import mail_counts, suppressions
from postroad.storage.people import accounts as stored_accounts
from tests import accepted_mail, bounce_counts, dkim_signatures, feedback_loop, reports
from tests.contexts import Clock
from tests.protocol.reports import complaints as samples

ReportResult = complaints.ReportResult
ADDRESS = "complaints@return.example.com"


@pytest.fixture
async def ctx(ctx: context.Context) -> AsyncIterator[context.Context]:
    """An installation that knows the feedback loop whose reports are signed."""
    async with feedback_loop.listed(ctx) as listed:
        yield listed


@pytest.fixture
async def message_id(ctx: context.Context, sender: str) -> str:
    """A message with two recipients, both delivered."""
    message_id = await accepted_mail.accept(ctx, sender, to=("Ada@example.net", "bob@example.net"))
    await reports.settle(ctx)
    return message_id


async def receive(
    ctx: context.Context, token: str, sample: str = samples.FULL, *, sent_to: str = ADDRESS, is_signed: bool = True
) -> complaints.ProcessedReport:
    content = samples.report(sample, token)
    report = arf.read(content)
    assert report is not None
    return await complaints.receive(
        ctx, report, feedback_loop.signed(content, at=ctx.clock()) if is_signed else content, sent_to=sent_to
    )


async def fate(
    ctx: context.Context, token: str, sample: str = samples.FULL, *, sent_to: str = ADDRESS, is_signed: bool = True
) -> ReportResult:
    return (await receive(ctx, token, sample, sent_to=sent_to, is_signed=is_signed)).result


async def kept_of(ctx: context.Context, account_id: str, message_id: str) -> list[stored_reports.AsyncBounce]:
    async with ctx.store.reading() as tx:
        return await stored_reports.async_bounces(tx, account_id, message_id)


async def suppressed(ctx: context.Context, account_id: str) -> list[suppressions.Suppression]:
    async with ctx.store.reading() as tx:
        return await suppressions.of_account(tx, account_id, after="", limit=10)


async def test_a_complaint_is_kept_counted_and_its_address_left_alone(
    ctx: context.Context, sender: str, message_id: str
) -> None:
    before = await messages.find(ctx, sender, message_id)
    received = await receive(ctx, await reports.path(ctx, message_id))
    (kept,) = await kept_of(ctx, sender, message_id)
    assert received == complaints.ProcessedReport(
        ReportResult.RECORDED, message_id, kept.recipient_id, is_authenticated=True, notices=[]
    )
    assert (kept.action, kept.received_at, kept.response) == ("complaint", ctx.clock(), "feedback report: abuse")
    assert await suppressed(ctx, sender) == [
        suppressions.Suppression(
            sender, "ada@example.net", "complaint", "feedback report: abuse", None, message_id, ctx.clock()
        )
    ]
    assert await bounce_counts.counted(ctx, sender) == Counts(0, 0, 1)
    assert await messages.find(ctx, sender, message_id) == before


async def test_who_bounced_later_may_still_complain(ctx: context.Context, message_id: str) -> None:
    content = reports.report(reports.group("ada@example.net", status="5.2.2", words="full"))
    (bounced,) = (await async_bounces.receive(ctx, await reports.named(ctx, message_id), content)).handled
    assert bounced.result == "recorded"
    assert await fate(ctx, await reports.path(ctx, message_id)) == ReportResult.RECORDED
    assert await fate(ctx, await reports.path(ctx, message_id)) == ReportResult.REPEATED


async def test_whoever_complains_gets_no_more_mail_even_where_bounces_suppress_nobody(
    ctx: context.Context, sender: str, message_id: str
) -> None:
    testing = msgspec.structs.replace(ctx.settings.testing, suppress=False)
    other = dataclasses.replace(ctx, settings=msgspec.structs.replace(ctx.settings, testing=testing))
    assert await fate(other, await reports.path(ctx, message_id)) == ReportResult.RECORDED
    assert len(await suppressed(ctx, sender)) == 1


async def test_a_complaint_is_kept_once_for_a_recipient(ctx: context.Context, sender: str, message_id: str) -> None:
    token = await reports.path(ctx, message_id)
    found = await asyncio.gather(*[fate(ctx, token) for _ in range(3)])
    assert sorted(found) == [ReportResult.RECORDED, ReportResult.REPEATED, ReportResult.REPEATED]
    fraud = samples.with_fields(samples.SEVERAL)
    assert await fate(ctx, token, fraud) == ReportResult.REPEATED
    other = await reports.path(ctx, message_id, "bob@example.net")
    assert await fate(ctx, other, fraud) == ReportResult.RECORDED
    assert len({row.received_at for row in await kept_of(ctx, sender, message_id)}) == 2


async def test_a_complaint_and_an_async_bounce_are_stored_beside_each_other(
    ctx: context.Context, sender: str, message_id: str
) -> None:
    assert await fate(ctx, await reports.path(ctx, message_id)) == ReportResult.RECORDED
    await async_bounces.receive(
        ctx, await reports.named(ctx, message_id), reports.report(reports.group("ada@example.net"))
    )
    assert [row.action for row in await kept_of(ctx, sender, message_id)] == ["complaint", "failed"]
    assert await bounce_counts.counted(ctx, sender) == Counts(0, 0, 1)
    assert [row.source for row in await suppressed(ctx, sender)] == ["complaint"]


async def test_a_complaint_concerns_nobody_but_the_recipient_of_its_token(
    ctx: context.Context, sender: str, message_id: str
) -> None:
    token = await reports.path(ctx, message_id)
    both = samples.with_fields(samples.SEVERAL)
    found = await asyncio.gather(*[fate(ctx, token, both) for _ in range(3)])
    assert sorted(found) == [ReportResult.RECORDED, ReportResult.REPEATED, ReportResult.REPEATED]
    assert await fate(ctx, token, samples.FULL.replace("ada@", "bob@")) == ReportResult.REPEATED
    assert len(await kept_of(ctx, sender, message_id)) == 1
    assert [row.email_key for row in await suppressed(ctx, sender)] == ["ada@example.net"]
    assert await bounce_counts.counted(ctx, sender) == Counts(0, 0, 1)


async def test_a_single_person_suspends_nobody_with_reports_of_his_own(
    ctx: context.Context, sender: str, message_id: str
) -> None:
    """Anybody can write reports about the mail that he gets; they end his mail, and count for nothing."""
    addresses = [f"eve+{number}@example.net" for number in range(4)]
    await bounce_counts.count(ctx, sender, recipients=500)
    for email in addresses:
        other = await accepted_mail.accept(ctx, sender, to=(email,))
        await reports.settle(ctx)
        received = await receive(ctx, await reports.path(ctx, other, email), is_signed=False)
        assert (received.result, received.is_authenticated, received.notices) == (ReportResult.RECORDED, False, ())
    assert [row.email_key for row in await suppressed(ctx, sender)] == addresses
    assert await bounce_counts.counted(ctx, sender) == Counts(500, 0, 0)
    assert (await accounts.find(ctx, sender)).status == stored_accounts.ACTIVE


async def test_a_mailbox_counts_once_under_all_its_names_in_a_window(
    ctx: context.Context, sender: str, message_id: str, clock: Clock
) -> None:
    async def complain(email: str) -> None:
        other = await accepted_mail.accept(ctx, sender, to=(email,))
        await reports.settle(ctx)
        assert await fate(ctx, await reports.path(ctx, other, email)) == ReportResult.RECORDED

    for email in ("eve@gmail.com", "eve+1@gmail.com", "e.v.e+2@googlemail.com"):
        await complain(email)
    assert await bounce_counts.counted(ctx, sender) == Counts(0, 0, 1)
    clock.pass_seconds(6 * 86_400)
    await complain("ev.e@gmail.com")
    assert await bounce_counts.counted(ctx, sender) == Counts(0, 0, 1)
    clock.pass_seconds(86_400)
    await complain("e.ve@gmail.com")
    assert await bounce_counts.counted(ctx, sender) == Counts(0, 0, 2)


async def test_a_signed_report_counts_for_nobody_but_whom_it_names(
    ctx: context.Context, sender: str, message_id: str
) -> None:
    """Whoever has a signed report can send it to any return path that he knows."""
    content = feedback_loop.signed(samples.report(samples.FULL, "eve@example.org"))
    report = arf.read(content)
    assert report is not None
    for email in ("ada@example.net", "bob@example.net"):
        sent_to = await reports.path(ctx, message_id, email)
        received = await complaints.receive(ctx, report, content, sent_to=sent_to)
        assert (received.result, received.is_authenticated) == (ReportResult.RECORDED, False)
    assert await bounce_counts.counted(ctx, sender) == Counts()
    assert [row.email_key for row in await suppressed(ctx, sender)] == ["ada@example.net", "bob@example.net"]


async def test_a_signed_report_counts_once_however_short_the_window_is(
    ctx: context.Context, sender: str, message_id: str, clock: Clock
) -> None:
    guard = msgspec.structs.replace(ctx.settings.bounce_guard, days=1)
    ctx = dataclasses.replace(ctx, settings=msgspec.structs.replace(ctx.settings, bounce_guard=guard))
    token = await reports.path(ctx, message_id)
    content = feedback_loop.signed(samples.report(samples.FULL, token))
    report = arf.read(content)
    assert report is not None
    for day in range(7):
        received = await complaints.receive(ctx, report, content, sent_to=ADDRESS)
        assert received.is_authenticated is (day <= 5)
        clock.pass_seconds(86_400)
        await cleanup.sweep(ctx)
    assert await bounce_counts.counted(ctx, sender) == Counts()
    async with ctx.store.reading() as tx:
        assert await mail_counts.guard_sums(tx, [sender], after_day=0) == {}
    await receive(ctx, token)
    assert await bounce_counts.counted(ctx, sender) == Counts(0, 0, 1)


async def test_the_type_that_makes_a_report_of_a_signed_text_must_be_signed(
    ctx: context.Context, sender: str, message_id: str
) -> None:
    """A reply quotes what somebody wrote; with another boundary, the quotation would be the report."""
    quotation = samples.report(samples.FULL, await reports.path(ctx, message_id)).partition(b"\r\n\r\n")[2]
    head = b"From: <feedback@provider.example>\r\nContent-Type: text/plain\r\n\r\nYou wrote:\r\n"
    kind = samples.HEAD.partition("Content-Type: ")[2].strip().replace("\n", "\r\n").encode()
    for names in ("from", "from:content-type"):
        tags = {"h": names, "t": str(ctx.clock() // 1_000_000)}
        signed = dkim_signatures.sign(head + quotation, tags=tags)
        for attack in (
            signed.replace(b"text/plain", kind),
            b"Content-Type: " + kind + b"\r\n" + signed,
            b"X: y\nContent-Type: " + kind + b"\r\n" + signed,
        ):
            report = arf.read(attack)
            assert report is not None
            received = await complaints.receive(ctx, report, attack, sent_to=ADDRESS)
            assert not received.is_authenticated
    assert await bounce_counts.counted(ctx, sender) == Counts()


async def test_a_report_of_somebody_else_keeps_none_of_the_feedback_loop_from_counting(
    ctx: context.Context, sender: str, message_id: str
) -> None:
    token = await reports.path(ctx, message_id)
    assert await fate(ctx, token, is_signed=False) == ReportResult.RECORDED
    assert await bounce_counts.counted(ctx, sender) == Counts()
    for _ in range(2):
        assert await fate(ctx, token) == ReportResult.REPEATED
        assert await bounce_counts.counted(ctx, sender) == Counts(0, 0, 1)


@pytest.mark.parametrize("source", sorted(set(suppressions.Source) - {suppressions.Source.COMPLAINT}))
async def test_a_complaint_counts_and_stays_though_the_account_had_listed_the_address_before(
    ctx: context.Context, sender: str, message_id: str, source: suppressions.Source
) -> None:
    async with ctx.store.transaction() as tx:
        listed = suppressions.Suppression(sender, "ada@example.net", source, "first", None, None, 1)
        await suppressions.add(tx, [listed])
    assert await fate(ctx, await reports.path(ctx, message_id)) == ReportResult.RECORDED
    (row,) = await suppressed(ctx, sender)
    assert (row.source, row.reason, row.message_id) == ("complaint", "feedback report: abuse", message_id)
    assert await bounce_counts.counted(ctx, sender) == Counts(0, 0, 1)


async def test_reports_of_other_types_are_kept_nowhere(ctx: context.Context, sender: str, message_id: str) -> None:
    for kind in ("not-spam", "auth-failure", "virus", "other", "", "abuse; x"):
        sample = samples.FULL.replace("Feedback-Type: abuse", f"Feedback-Type: {kind}")
        assert await fate(ctx, await reports.path(ctx, message_id), sample) == ReportResult.NOT_A_COMPLAINT
    assert await kept_of(ctx, sender, message_id) == []
    assert await suppressed(ctx, sender) == []
    assert await bounce_counts.counted(ctx, sender) == Counts()


async def test_a_forged_token_is_worth_nothing(ctx: context.Context, sender: str, message_id: str) -> None:
    genuine = await reports.path(ctx, message_id)
    place = genuine.index("@") - 1
    forged = genuine[:place] + ("0" if genuine[place] != "0" else "1") + genuine[place + 1 :]
    for token in (forged, "shop@example.com", "", "bounces+@x", message_id):
        assert await fate(ctx, token) == ReportResult.UNKNOWN_MESSAGE
    assert await fate(ctx, reports.unknown_path(ctx)) == ReportResult.UNKNOWN_MESSAGE
    assert await kept_of(ctx, sender, message_id) == []
    assert await suppressed(ctx, sender) == []


async def test_the_token_may_stand_in_the_returned_message_or_in_the_address_of_the_report(
    ctx: context.Context, sender: str
) -> None:
    message_ids = [await accepted_mail.accept(ctx, sender) for _ in range(2)]
    await reports.settle(ctx)
    first, second = [await reports.path(ctx, message_id) for message_id in message_ids]
    assert await fate(ctx, first, samples.REDACTED) == ReportResult.RECORDED
    assert await fate(ctx, "", samples.FULL, sent_to=second.upper()) == ReportResult.RECORDED
    assert [len(await kept_of(ctx, sender, message_id)) for message_id in message_ids] == [1, 1]


@pytest.mark.parametrize("sample", [samples.REDACTED, samples.FULL.replace("ada@", "eve@")], ids=["hidden", "other"])
async def test_the_token_tells_the_recipient_whatever_the_report_says(
    ctx: context.Context, sender: str, message_id: str, sample: str
) -> None:
    assert await fate(ctx, await reports.path(ctx, message_id, "bob@example.net"), sample) == ReportResult.RECORDED
    assert [row.email_key for row in await suppressed(ctx, sender)] == ["bob@example.net"]


async def test_who_never_got_the_message_cannot_complain(ctx: context.Context, sender: str, message_id: str) -> None:
    for status in set(statuses.RecipientStatus) - {"delivered", "failed"}:
        await reports.settle(ctx, status)
        assert await fate(ctx, await reports.path(ctx, message_id)) == ReportResult.NOT_DELIVERED
    assert await bounce_counts.counted(ctx, sender) == Counts()
    assert await suppressed(ctx, sender) == []


async def test_complaints_warn_and_then_suspend(ctx: context.Context, sender: str, message_id: str) -> None:
    await bounce_counts.count(ctx, sender, recipients=500)
    (warned,) = (await receive(ctx, await reports.path(ctx, message_id))).notices
    assert (warned.level, warned.trigger) == (Level.WARNED, Trigger.COMPLAINTS)
    other = await accepted_mail.accept(ctx, sender, to=("bob@example.net",))
    await reports.settle(ctx)
    (suspended,) = (await receive(ctx, await reports.path(ctx, other, "bob@example.net"))).notices
    assert (suspended.level, suspended.counts) == (Level.SUSPENDED, Counts(500, 0, 2))
    found = await accounts.find(ctx, sender)
    assert found.suspended_by == stored_accounts.BOUNCE_GUARD
    assert "2 complaints for the last 500 recipients (0.40%)" in (found.suspended_reason or "")


@pytest.mark.parametrize(
    "recipient, is_ours",
    [
        ("complaints@return.example.com", True),
        ("Complaints@Return.Example.COM", True),
        ("complaints@example.com", False),
        ("complaints+x@return.example.com", False),
        ("complaints", False),
        ("", False),
    ],
)
async def test_there_is_one_address_for_complaints(ctx: context.Context, recipient: str, *, is_ours: bool) -> None:
    assert not complaints.is_ours(ctx, recipient)
    delivery = msgspec.structs.replace(ctx.settings.delivery, return_path_domain="return.example.com")
    other = dataclasses.replace(ctx, settings=msgspec.structs.replace(ctx.settings, delivery=delivery))
    assert complaints.is_ours(other, recipient) is is_ours
