"""What charts and the overview show: what happened, once, in the hour of acceptance, and of no other account."""

import pytest
from msgspec import structs

from postroad import context, errors
from postroad.mail.results import outcomes
from postroad.model.bounces import disposition
from postroad.model.mail import statuses
from postroad.model.units import chart_ranges, times
from postroad.model.units.chart_ranges import Period
from postroad.services.accounts import account_registry as accounts
from postroad.services.accounts import credits, statistics
from postroad.services.messages import queue_inspection
from postroad.services.operations import destinations
from postroad.services.queue import holds
from postroad.storage.mail import attempts, mail_counts, queue, queue_views, webhooks
from postroad.storage.operations import processes
from tests import accepted_mail, webhook_rows
from tests.contexts import SECOND, Clock
from tests.services import claimed_mail
from tests.storage import webhook_samples

HOUR_SECONDS = 3600
DELIVERED, BOUNCED, RETRY, FAILED = disposition.Verdict


def totals(**counts: int) -> statistics.Counts:
    return statistics.Counts(**{**dict.fromkeys(statistics.Counts.__struct_fields__, 0), **counts})


async def of_period(ctx: context.Context, account_id: str, period: Period) -> statistics.Overview:
    return await statistics.overview(ctx, account_id, chart_ranges.of_period(period, now=ctx.clock()))


async def day(ctx: context.Context, account_id: str) -> statistics.Overview:
    return await of_period(ctx, account_id, Period.DAY)


async def count(ctx: context.Context, account_id: str, *, hour: int, provider: str = "", **counts: int) -> None:
    async with ctx.store.transaction() as tx:
        await mail_counts.add_hourly(
            tx, [mail_counts.CountIncrement(account_id=account_id, hour=hour, provider=provider, **counts)]
        )


def at_provider_queue(outcome: outcomes.Outcome, provider_queue: str) -> outcomes.Outcome:
    """The same result from the provider queue of another provider."""
    assert outcome.attempt is not None
    return structs.replace(outcome, attempt=structs.replace(outcome.attempt, provider_queue=provider_queue))


async def test_an_account_without_mail_has_zeros_for_all_of_the_period(ctx: context.Context, shop: str) -> None:
    found = await day(ctx, shop)
    assert (found.totals, found.before) == (totals(), totals())
    assert found.series.messages == found.series.deferred == [0] * 24
    assert (found.providers, found.queued, found.oldest, found.failures) == ([], 0, None, [])
    nowhere = "acc_" + "0" * 28
    with pytest.raises(errors.NotFound):
        await day(ctx, nowhere)
    assert len(await statistics.change_fingerprint(ctx, nowhere)) == 8


async def test_accepted_mail_counts_once_in_the_hour_of_its_acceptance(
    ctx: context.Context, account_id: str, clock: Clock
) -> None:
    await accepted_mail.allow_sending(ctx, account_id, amount=3)
    await accepted_mail.accept(ctx, account_id, to=("a@example.net", "b@example.net"), key="order-7")
    clock.pass_seconds(HOUR_SECONDS)
    # Neither a request that comes twice nor a refused one counts.
    await accepted_mail.accept(ctx, account_id, to=("a@example.net", "b@example.net"), key="order-7")
    with pytest.raises(errors.InsufficientCredits):
        await accepted_mail.accept(ctx, account_id, to=("a@example.net", "b@example.net"))
    await accepted_mail.accept(ctx, account_id)
    # Mail that cost nothing is queued, also when credits are needed again.
    await credits.set_unlimited(ctx, account_id, unlimited=True)
    await accepted_mail.accept(ctx, account_id)
    await credits.set_unlimited(ctx, account_id, unlimited=False)
    found = await day(ctx, account_id)
    assert found.totals == totals(messages=3, recipients=4)
    assert (found.series.messages[-2:], found.series.recipients[-2:]) == ([1, 2], [2, 2])
    assert found.queued == 4


async def test_results_count_in_the_hour_of_acceptance_and_failures_by_their_cause(
    ctx: context.Context, shop: str, clock: Clock
) -> None:
    """A list of the messages that were accepted in an hour has the messages that the hour counts."""
    hour = mail_counts.hour_of(clock.now)
    _, claimed = await claimed_mail.another(ctx, shop, *(f"{name}@example.net" for name in "abcdef"))
    clock.pass_seconds(5 * HOUR_SECONDS)
    expired = structs.replace(
        claimed_mail.outcome(ctx, claimed[4], FAILED, recipient_count=6, tried=False),
        status=statuses.RecipientStatus.EXPIRED,
    )
    await ctx.outcome_commits.submit(
        [
            at_provider_queue(claimed_mail.outcome(ctx, claimed[0], BOUNCED, recipient_count=6), "google"),
            at_provider_queue(claimed_mail.outcome(ctx, claimed[1], FAILED, recipient_count=6), "google"),
            at_provider_queue(claimed_mail.outcome(ctx, claimed[2], DELIVERED, recipient_count=6), "google"),
            claimed_mail.outcome(ctx, claimed[3], BOUNCED, recipient_count=6, tried=False),
            expired,
            claimed_mail.outcome(ctx, claimed[5], FAILED, recipient_count=6, tried=False),
        ]
    )
    async with ctx.store.reading() as tx:
        found = await mail_counts.failures_between(tx, shop, from_hour=hour, until_hour=hour + 1)
    assert sorted(map(structs.astuple, found)) == [
        (hour, "", "expired", 0, 1),
        (hour, "", "retries_ended", 0, 1),
        (hour, "", "suppressed", 1, 0),
        (hour, "google", "because", 1, 1),
    ]
    series = (await day(ctx, shop)).series
    assert (series.delivered[-6:], series.bounced[-6:], series.failed[-6:]) == (
        [1, 0, 0, 0, 0, 0],
        [2, 0, 0, 0, 0, 0],
        [3, 0, 0, 0, 0, 0],
    )


async def test_results_count_by_provider_and_the_worst_comes_first(ctx: context.Context, shop: str) -> None:
    _, (undecided, *claimed) = await claimed_mail.another(ctx, shop, *(f"{name}@example.net" for name in "abcdefgh"))
    # What no destination has decided is no provider's.
    await ctx.outcome_commits.submit([claimed_mail.outcome(ctx, undecided, BOUNCED, tried=False)])
    results = [
        ("google", DELIVERED),
        ("google", DELIVERED),
        ("google", RETRY),
        ("microsoft", BOUNCED),
        ("mx.example.net", FAILED),
        ("mx.example.org", BOUNCED),
        ("yahoo", DELIVERED),
    ]
    await ctx.outcome_commits.submit(
        [
            at_provider_queue(claimed_mail.outcome(ctx, one, verdict, recipient_count=8), provider_queue)
            for one, (provider_queue, verdict) in zip(claimed, results, strict=True)
        ]
    )
    found = await day(ctx, shop)
    assert found.providers == [
        statistics.ProviderCounts("others", 0, 1, 1, 0),
        statistics.ProviderCounts("microsoft", 0, 1, 0, 0),
        statistics.ProviderCounts("google", 2, 0, 0, 1),
        statistics.ProviderCounts("yahoo", 1, 0, 0, 0),
    ]
    assert found.totals == totals(messages=1, recipients=8, delivered=3, bounced=3, failed=1, deferred=1)
    assert found.queued == 1


async def test_a_result_that_is_recorded_twice_or_without_a_lease_counts_once(ctx: context.Context, shop: str) -> None:
    _, (claimed,) = await claimed_mail.another(ctx, shop, "a@example.net")
    later = claimed_mail.outcome(ctx, claimed, RETRY, code=451)
    for retry in (claimed_mail.outcome(ctx, claimed, RETRY, worker="another"), later, later):
        await ctx.outcome_commits.submit([retry])
    assert (await day(ctx, shop)).totals.deferred == 1
    ended = claimed_mail.outcome(ctx, claimed, DELIVERED)
    for final in (ended, ended, claimed_mail.outcome(ctx, claimed, FAILED)):
        await ctx.outcome_commits.submit([final])
    assert (await day(ctx, shop)).totals == totals(messages=1, recipients=1, delivered=1, deferred=1)


async def test_a_result_that_is_not_committed_counts_nothing(ctx: context.Context, shop: str) -> None:
    _, (claimed,) = await claimed_mail.another(ctx, shop, "a@example.net")
    before = await day(ctx, shop)

    async def fail() -> None:
        async with ctx.store.transaction() as tx:
            await outcomes.record(tx, [[claimed_mail.outcome(ctx, claimed, DELIVERED)]], outbox=ctx.outbox)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail()
    assert await day(ctx, shop) == before
    await ctx.outcome_commits.submit([claimed_mail.outcome(ctx, claimed, DELIVERED)])
    assert (await day(ctx, shop)).totals.delivered == 1


@pytest.mark.parametrize(
    "period, buckets, first, last",
    [
        # The clock stands at 08:00; a quarter of a day begins at 06:00, and a day at 00:00.
        (Period.DAY, 24, "2027-01-14T09:00:00.000Z", "2027-01-15T08:00:00.000Z"),
        (Period.WEEK, 28, "2027-01-08T12:00:00.000Z", "2027-01-15T06:00:00.000Z"),
        (Period.MONTH, 30, "2026-12-17T00:00:00.000Z", "2027-01-15T00:00:00.000Z"),
    ],
)
async def test_a_period_is_cut_where_hours_and_days_begin_and_ends_now(
    ctx: context.Context, shop: str, clock: Clock, period: Period, buckets: int, first: str, last: str
) -> None:
    clock.pass_seconds(1799.5)
    starts = [times.parse(first), times.parse(last)]
    from_hour, last_hour = (mail_counts.hour_of(start) for start in starts)
    await count(ctx, shop, hour=from_hour, messages=1)
    await count(ctx, shop, hour=mail_counts.hour_of(clock.now), messages=10)
    await count(ctx, shop, hour=last_hour - 1, messages=100)
    length = (last_hour - from_hour) // (buckets - 1) * buckets
    await count(ctx, shop, hour=mail_counts.hour_of(clock.now) - length - 1, messages=1_000)
    await count(ctx, shop, hour=from_hour - length, messages=10_000)
    await count(ctx, shop, hour=from_hour - length - 1, messages=100_000)
    found = await of_period(ctx, shop, period)
    assert len(found.series.starts) == buckets
    assert [found.series.starts[0], found.series.starts[-1]] == starts
    assert found.series.messages == [1, *[0] * (buckets - 3), 100, 10]
    assert (found.totals.messages, found.before.messages) == (111, 11_000)


async def test_the_largest_share_refused_comes_first_and_a_few_results_are_no_share(
    ctx: context.Context, shop: str
) -> None:
    hour = mail_counts.hour_of(ctx.clock())
    await count(ctx, shop, hour=hour, provider="microsoft", delivered=970, bounced=30)
    await count(ctx, shop, hour=hour, provider="yahoo", delivered=18, bounced=1, failed=1)
    await count(ctx, shop, hour=hour, provider="apple", delivered=0, bounced=19)
    await count(ctx, shop, hour=hour, provider="google", delivered=2_000)
    found = (await day(ctx, shop)).providers
    assert [one.name for one in found] == ["yahoo", "microsoft", "google", "apple"]
    assert (found[0].refused, found[0].ended) == (2, 20)


async def test_the_oldest_recipient_is_shown_with_the_reason_why_it_waits(
    ctx: context.Context, shop: str, clock: Clock
) -> None:
    message_id, (claimed,) = await claimed_mail.another(ctx, shop, "first@example.net")
    await ctx.outcome_commits.submit([claimed_mail.outcome(ctx, claimed, RETRY, code=451, response="greylisted")])
    clock.pass_seconds(0.5)
    await accepted_mail.accept(ctx, shop, to=("second@example.net",))
    oldest = (await day(ctx, shop)).oldest
    assert oldest is not None
    assert (oldest.waiting.message_id, oldest.waiting.email) == (message_id, "first@example.net")
    assert oldest.why == "example.net asked us to try later (2.0.0); next attempt at 2027-01-15 08:00:01 UTC"
    assert oldest.waiting.due_at == times.parse("2027-01-15T08:00:01.000Z")


async def test_why_mail_waits_says_nothing_of_hosts_and_of_others_mail(ctx: context.Context, shop: str) -> None:
    _, (claimed,) = await claimed_mail.another(ctx, shop, "first@example.net")
    sending = (await day(ctx, shop)).oldest
    assert sending is not None
    assert sending.why == "being sent"
    await ctx.outcome_commits.submit([at_provider_queue(claimed_mail.outcome(ctx, claimed, RETRY), "google")])
    async with ctx.store.transaction() as tx:
        reported = processes.QueueStatus(
            "w1", "google", "paused", "too much for <eve@others.example>", ctx.clock(), ctx.clock()
        )
        await processes.put_queues(tx, [reported])
    await queue_inspection.retry(ctx, [queue_views.Filter(account_id=shop)])
    ready = (await day(ctx, shop)).oldest
    assert ready is not None
    assert ready.why == "Google asked us to slow down; mail to it is paused"


async def test_the_ten_latest_failures_are_shown_in_plain_words(ctx: context.Context, shop: str, clock: Clock) -> None:
    _, claimed = await claimed_mail.another(ctx, shop, *(f"p{number}@example.net" for number in range(12)))
    for place, one in enumerate(claimed):
        verdict = DELIVERED if place == 0 else FAILED if place == 11 else BOUNCED
        fault = disposition.Fault.ADDRESS if verdict is BOUNCED else None
        result = claimed_mail.outcome(
            ctx, one, verdict, recipient_count=12, code=550, response=f"no {place}", fault=fault
        )
        assert result.attempt is not None
        reason = structs.replace(result.attempt, reason="unknown_address")
        await ctx.outcome_commits.submit([structs.replace(result, attempt=reason)])
        clock.pass_seconds(1)
    found = (await day(ctx, shop)).failures
    assert [failure.response for failure in found] == [f"no {place}" for place in range(11, 1, -1)]
    assert found[1] == attempts.FinalRefusal(
        message_id=claimed[10].key[1],
        recipient_id=claimed[10].key[2],
        email=claimed[10].email,
        started_at=clock.now - 2 * SECOND,
        verdict="bounced",
        smtp_code=550,
        response="no 10",
        reason="unknown_address",
        fault="address",
    )
    assert (found[0].verdict, found[0].fault) == ("failed", None)


async def test_an_account_sees_its_own_mail_only(ctx: context.Context, shop: str) -> None:
    other = await accounts.create(ctx, "Other")
    before = (await day(ctx, other.id), await statistics.change_fingerprint(ctx, other.id))
    _, claimed = await claimed_mail.another(ctx, shop, "a@example.net", "b@example.net")
    await ctx.outcome_commits.submit([claimed_mail.outcome(ctx, claimed[0], BOUNCED, recipient_count=2)])
    assert (await day(ctx, other.id), await statistics.change_fingerprint(ctx, other.id)) == before


async def test_the_pulse_changes_with_mail_and_results_and_not_without(
    ctx: context.Context, shop: str, clock: Clock
) -> None:
    seen = [await statistics.change_fingerprint(ctx, shop)]
    _, (claimed,) = await claimed_mail.another(ctx, shop, "a@example.net")
    seen.append(await statistics.change_fingerprint(ctx, shop))
    await ctx.outcome_commits.submit([claimed_mail.outcome(ctx, claimed, RETRY)])
    seen.append(await statistics.change_fingerprint(ctx, shop))
    assert len(set(seen)) == 3
    late = claimed_mail.outcome(ctx, claimed, DELIVERED)
    clock.pass_seconds(5 * HOUR_SECONDS)  # it is recorded hours later
    before = await statistics.change_fingerprint(ctx, shop)
    await ctx.outcome_commits.submit([late])
    after = await statistics.change_fingerprint(ctx, shop)
    assert after != before
    clock.pass_seconds(1)
    assert await statistics.change_fingerprint(ctx, shop) == after
    assert {len(pulse) for pulse in (*seen, before, after)} == {8}


async def test_the_pulse_changes_with_what_operators_pause_and_hold(ctx: context.Context, shop: str) -> None:
    seen = [await statistics.change_fingerprint(ctx, shop)]
    await destinations.pause(ctx, "google", reason="blocked", until=None)
    seen.append(await statistics.change_fingerprint(ctx, shop))
    await holds.hold(ctx, account_id=shop)
    seen.append(await statistics.change_fingerprint(ctx, shop))
    await holds.release_named(ctx, account_id=shop, domain="", duplicates_accepted=False)
    seen.append(await statistics.change_fingerprint(ctx, shop))
    await destinations.resume(ctx, "google")
    seen.append(await statistics.change_fingerprint(ctx, shop))
    assert [seen.index(pulse) for pulse in seen] == [0, 1, 2, 1, 0]


async def test_the_pulse_changes_with_each_webhook_delivery_and_attempt(ctx: context.Context, shop: str) -> None:
    async with ctx.store.transaction() as tx:
        await webhooks.insert(tx, webhook_samples.webhook("whk_1", shop))
        await webhooks.insert(tx, webhook_samples.webhook("whk_2", shop, is_first=0))
    seen = [await statistics.change_fingerprint(ctx, shop)]
    await webhook_rows.put(ctx, shop, webhook_id="whk_2")
    seen.append(await statistics.change_fingerprint(ctx, shop))
    delivery = await webhook_rows.put(ctx, shop)
    seen.append(await statistics.change_fingerprint(ctx, shop))
    for attempt, state in ((1, "waiting"), (2, "succeeded")):
        async with ctx.store.transaction() as tx:
            until = ctx.clock() + 30 * SECOND
            await webhooks.claim(tx, [("whk_1", 1)], lease_until=until, worker="w")
        seen.append(await statistics.change_fingerprint(ctx, shop))
        async with ctx.store.transaction() as tx:
            result = webhooks.DeliveryUpdate(
                key=delivery.key,
                worker="w",
                attempt_count=attempt,
                url=delivery.url,
                state=webhooks.State(state),
                due_at=ctx.clock() + attempt,
                ended_at=None if state == "waiting" else ctx.clock(),
            )
            assert await webhooks.record(tx, [result]) == {delivery.key}
            await webhooks.promote(tx, now=ctx.clock() + SECOND, attempts=7, limit=1)
        seen.append(await statistics.change_fingerprint(ctx, shop))
    assert len(set(seen)) == 7


# Samples of the newest recipients: bounded, narrowed, and counting what hourly counts count.


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


async def test_a_sample_has_the_mail_that_is_asked_for(ctx: context.Context, shop: str, account_id: str) -> None:
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
        assert len((await read(ctx, account_id, tag=tag, domain=domain)).recipients) == count, (tag, domain)
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
