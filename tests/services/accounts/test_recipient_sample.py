"""Samples of the newest recipients: bounded, narrowed, and counting what hourly counts count."""

import pytest
from msgspec import structs

from postroad import context
from postroad.model.bounces import disposition
from postroad.services.accounts import statistics
from postroad.storage.mail import attempts, mail_counts, queue
from postroad.storage.people import accounts as stored_accounts
from tests import accepted_mail
from tests.contexts import SECOND, Clock
from tests.services import claimed_mail

DELIVERED, BOUNCED, RETRY, FAILED = disposition.Verdict


@pytest.fixture
async def shop(ctx: context.Context, account: stored_accounts.Account) -> str:
    """An account that may send."""
    await accepted_mail.allow_sending(ctx, account.id)
    return account.id


async def read(
    ctx: context.Context, account_id: str, *, limit: int = 100, tag: str = "", domain: str = ""
) -> statistics.Sample:
    hour = mail_counts.hour_of(ctx.clock())
    return await statistics.read_sample(
        ctx,
        account_id,
        from_hour=hour - 10,
        until_hour=hour + 1,
        narrowing=statistics.Narrowing(domain, tag),
        limit=limit,
    )


async def test_a_sample_counts_what_the_hourly_counts_count(ctx: context.Context, shop: str, clock: Clock) -> None:
    _, claimed = await claimed_mail.another(ctx, shop, *(f"{name}@example.net" for name in "abcde"))
    for one, verdict in zip(claimed, (RETRY, DELIVERED, BOUNCED, FAILED), strict=False):
        await ctx.outcome_commits.submit([claimed_mail.outcome(ctx, one, verdict, recipient_count=5)])
    clock.pass_seconds(2)
    (again,) = [one for one in await retried(ctx) if one.key == claimed[0].key]
    await ctx.outcome_commits.submit([claimed_mail.outcome(ctx, again, DELIVERED, recipient_count=5)])
    await ctx.outcome_commits.submit([claimed_mail.outcome(ctx, claimed[4], BOUNCED, recipient_count=5, tried=False)])
    hour = mail_counts.hour_of(ctx.clock())
    async with ctx.store.reading() as tx:
        counted = await mail_counts.hourly_sums(tx, shop, from_hour=hour - 10, until_hour=hour + 1, hours=1)
    sampled = statistics.hourly_sample(await read(ctx, shop), from_hour=hour - 10)
    assert sorted(map(structs.astuple, sampled)) == sorted(map(structs.astuple, counted))
    assert statistics.total(sampled) == statistics.Counts(1, 5, 2, 2, 1, 1)


async def retried(ctx: context.Context) -> list[queue.Claimed]:
    async with ctx.store.transaction() as tx:
        await queue.promote(tx, now=ctx.clock(), limit=10)
    return await claimed_mail.claim_all(ctx, claimed_mail.WORKER)


async def test_a_sample_is_bounded_and_says_how_far_back_it_goes(ctx: context.Context, shop: str, clock: Clock) -> None:
    at = []
    for to in (("a@example.net",), ("b@example.net", "c@example.net"), ("d@example.net",)):
        at.append(clock.now)
        await accepted_mail.accept(ctx, shop, to=to)
        clock.pass_seconds(60)
    whole = await read(ctx, shop)
    assert (len(whole.recipients), whole.back_to) == (4, None)
    newest = await read(ctx, shop, limit=2)
    assert ([one.created_at for one in newest.recipients], newest.back_to) == ([at[2], at[1]], at[1])
    # Messages that do not fit are examined, too: the bound is for them.
    other = await read(ctx, shop, limit=2, domain="other.example")
    assert (other.recipients, other.back_to) == ([], at[1])


async def test_a_sample_has_the_mail_that_is_asked_for(
    ctx: context.Context, shop: str, account: stored_accounts.Account
) -> None:
    await accepted_mail.accept(ctx, shop, tags=("receipt",))
    await accepted_mail.accept(ctx, shop)
    for tag, domain, count in (
        ("", "", 2),
        ("receipt", "", 1),
        ("receip", "", 0),
        ("", "example.com", 2),
        ("", "ample.com", 0),
        ("receipt", "example.com", 1),
        ("receipt", "example.org", 0),
    ):
        assert len((await read(ctx, account.id, tag=tag, domain=domain)).recipients) == count, (tag, domain)
    assert len((await read(ctx, "acc_" + "0" * 28)).recipients) == 0


def test_delivery_times_are_by_provider_and_from_when_mail_may_be_sent() -> None:
    def delivered(seconds: int, queue: str, send_at: int | None = None) -> attempts.ScannedRecipient:
        return attempts.ScannedRecipient("em_1", SECOND, send_at, "delivered", 1, (1 + seconds) * SECOND, queue)

    waiting = attempts.ScannedRecipient("em_1", SECOND, None, "queued", 0, None, None)
    sample = statistics.Sample(
        [
            *(delivered(number, "google") for number in range(1, 21)),
            delivered(60, "mx.example.net", 31 * SECOND),
            waiting,
        ],
        None,
    )
    assert statistics.delivery_times(sample) == [
        statistics.DeliveryTime("google", 20, 10 * SECOND, 19 * SECOND),
        statistics.DeliveryTime("others", 1, 30 * SECOND, 30 * SECOND),
    ]
