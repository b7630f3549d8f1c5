"""Asynchronous bounces and the bounce guard: authenticated ones count, once for a mailbox, and none known already."""

import asyncio
import dataclasses
from collections.abc import AsyncIterator, Sequence

import msgspec
import pytest

from postroad import config, context
from postroad.mail.results import async_bounces, guard_counts
from postroad.model.bounces.bounce_guard import Counts, Level
from postroad.model.mail import statuses
from postroad.services.accounts import account_registry as accounts
from postroad.services.suppressions import suppression_list as suppressions
from postroad.storage.mail import attempts as stored_reports
from postroad.storage.people import accounts as stored_accounts
from tests import accepted_mail, bounce_counts, feedback_loop, reports
from tests.contexts import SECRET_KEY

# 4 of 10 suspend.
GUARD = {"recipients": 10, "warn_percent": 20.0, "suspend_percent": 40.0}


@pytest.fixture
def settings(database_url: str) -> config.Settings:
    return config.load(
        environment={},
        overrides={
            "database": {"url": database_url},
            "security": {"installation_key": SECRET_KEY},
            "bounce_guard": GUARD,
        },
    )


@pytest.fixture
async def ctx(ctx: context.Context) -> AsyncIterator[context.Context]:
    """An installation that knows whose reports are signed."""
    async with feedback_loop.listed(ctx) as listed:
        yield listed


async def late(ctx: context.Context, message_id: str, who: str, **words: str) -> Sequence[guard_counts.Notice]:
    path = await reports.path(ctx, message_id, who)
    content = feedback_loop.signed(reports.report(reports.group(who, **words)), sent_to=path)  # type: ignore[arg-type]
    return (await async_bounces.receive(ctx, await reports.named(ctx, message_id, who), content)).notices


async def test_an_async_bounce_counts_once_for_a_recipient(ctx: context.Context, sender: str) -> None:
    message_id = await accepted_mail.accept(ctx, sender, to=("a@example.net", "b@example.net", "c@example.net"))
    await reports.settle(ctx)
    await bounce_counts.count(ctx, sender, recipients=20)
    await late(ctx, message_id, "b@example.net", status="5.2.2", words="mailbox full")
    assert await bounce_counts.counted(ctx, sender) == Counts(20, 0, 0)
    for words in ("no such user", "no such user", "really not"):
        assert not await late(ctx, message_id, "a@example.net", words=words)
    assert await bounce_counts.counted(ctx, sender) == Counts(20, 1, 0)
    await asyncio.gather(*[late(ctx, message_id, "c@example.net") for _ in range(3)])
    assert await bounce_counts.counted(ctx, sender) == Counts(20, 2, 0)


async def test_one_recipient_cannot_suspend_an_account_with_reports(ctx: context.Context, sender: str) -> None:
    names = [f"p+{number}@example.net" for number in range(10)]
    message_id = await accepted_mail.accept(ctx, sender, to=tuple(names))
    await reports.settle(ctx)
    await bounce_counts.count(ctx, sender, recipients=10)
    everybody = reports.report(*map(reports.group, names))
    for name in names[:9]:
        received = await async_bounces.receive(ctx, await reports.named(ctx, message_id, name), everybody)
        assert [each.result for each in received.handled].count(async_bounces.ReportResult.RECORDED) == 1
        assert received.notices == ()
    assert await bounce_counts.counted(ctx, sender) == Counts(10, 0, 0)
    page = await suppressions.page(ctx, sender, after="", limit=20, source="late_bounce")
    assert [row.email_key for row in page] == names[:9]
    for name in names:
        assert not await late(ctx, message_id, name)
    assert await bounce_counts.counted(ctx, sender) == Counts(10, 1, 0)


async def test_a_signed_report_says_nothing_about_another_return_path(ctx: context.Context, sender: str) -> None:
    message_id = await accepted_mail.accept(ctx, sender, to=("a@example.net", "b@example.net"))
    await reports.settle(ctx)
    everybody = reports.report(*map(reports.group, ("a@example.net", "b@example.net")))
    path = await reports.path(ctx, message_id, "a@example.net")
    for content in (
        feedback_loop.signed(everybody, sent_to=path),
        feedback_loop.signed(everybody),
        feedback_loop.signed(everybody, sent_to=path).replace(b"To: <", b"To: <x@example.net>\r\nTo: <"),
        feedback_loop.signed(everybody, sent_to=path).replace(b"from:to:", b"from:"),
    ):
        received = await async_bounces.receive(ctx, await reports.named(ctx, message_id, "b@example.net"), content)
        assert received.notices == ()
    assert await bounce_counts.counted(ctx, sender) == Counts()
    page = await suppressions.page(ctx, sender, after="", limit=20, source="late_bounce")
    assert [row.email_key for row in page] == ["b@example.net"]


async def test_an_async_bounce_of_an_address_on_the_list_does_not_count(ctx: context.Context, sender: str) -> None:
    message_ids = [await accepted_mail.accept(ctx, sender, to=("a@example.net", "b@example.net")) for _ in range(4)]
    await reports.settle(ctx)
    await bounce_counts.count(ctx, sender, recipients=10)
    for message_id in message_ids:
        assert not await late(ctx, message_id, "a@example.net")
        async with ctx.store.reading() as tx:
            assert len(await stored_reports.async_bounces(tx, sender, message_id)) == 1
    assert await bounce_counts.counted(ctx, sender) == Counts(10, 1, 0)


async def test_async_bounces_count_where_no_address_is_ever_suppressed(ctx: context.Context, sender: str) -> None:
    testing = msgspec.structs.replace(ctx.settings.testing, suppress=False)
    other = dataclasses.replace(ctx, settings=msgspec.structs.replace(ctx.settings, testing=testing))
    message_ids = [await accepted_mail.accept(ctx, sender, to=(f"{name}@example.net",)) for name in "ab"]
    await reports.settle(ctx)
    for message_id, name in zip(message_ids, "ab", strict=True):
        await late(other, message_id, f"{name}@example.net")
    assert await bounce_counts.counted(ctx, sender) == Counts(0, 2, 0)


async def test_an_async_bounce_of_a_recipient_that_bounced_already_does_not_count(
    ctx: context.Context, sender: str
) -> None:
    message_id = await accepted_mail.accept(ctx, sender, to=("a@example.net",))
    await reports.settle(ctx, statuses.RecipientStatus.BOUNCED)
    await late(ctx, message_id, "a@example.net")
    async with ctx.store.reading() as tx:
        assert len(await stored_reports.async_bounces(tx, sender, message_id)) == 1
    assert await bounce_counts.counted(ctx, sender) == Counts()


async def test_async_bounces_suspend_too(ctx: context.Context, sender: str) -> None:
    message_id = await accepted_mail.accept(ctx, sender, to=("a@example.net",))
    await reports.settle(ctx)
    await bounce_counts.count(ctx, sender, recipients=10, bounces=3)
    (notice,) = await late(ctx, message_id, "a@example.net")
    assert (notice.account_id, notice.level) == (sender, Level.SUSPENDED)
    assert (await accounts.find(ctx, sender)).suspended_by == stored_accounts.BOUNCE_GUARD
