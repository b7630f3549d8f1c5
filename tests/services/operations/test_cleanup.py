"""A sweep removes what has expired and nothing else, in transactions of a bounded size."""

import types
from typing import Any

import pytest

from postroad import context
from postroad.model.mail import limits
from postroad.model.units import identifiers
from postroad.protocol.reports import tls_report
from postroad.services import throttled_batches
from postroad.services.operations import cleanup, operator_jobs
from postroad.services.queue import holds
from postroad.storage.engine import store
from postroad.storage.mail import mail_counts, messages, tls_policies, webhooks
from postroad.storage.operations import processes
from postroad.storage.people import sessions
from tests import accepted_mail, contexts
from tests.storage import samples, webhook_samples

WEEK_SECONDS = 7 * 24 * 3600
NOTHING: dict[str, Any] = {
    "idempotency_keys": 0,
    "sessions": 0,
    "provider_queues": 0,
    "holds": 0,
    "webhook_deliveries": 0,
    "webhook_secrets": 0,
    "bodies": 0,
    "messages": 0,
    "has_more": False,
    "rates": 0,
}


async def insert_keys(ctx: context.Context, count: int, *, expires_at: int) -> None:
    keys = [
        messages.NewIdempotencyKey("cred_1", f"{expires_at}-{number}", "acc_1", b"hash", "em_1", expires_at)
        for number in range(count)
    ]
    async with ctx.store.transaction() as tx:
        await messages.insert_idempotency_keys(tx, keys)


async def insert_sessions(ctx: context.Context, count: int, *, expires_at: int) -> None:
    async with ctx.store.transaction() as tx:
        for number in range(count):
            await sessions.insert(tx, samples.session(f"tok_{expires_at}_{number}", expires_at=expires_at))


async def test_expired_keys_and_sessions_go_and_the_others_stay(ctx: context.Context, clock: contexts.Clock) -> None:
    await insert_keys(ctx, 3, expires_at=clock.now)
    await insert_keys(ctx, 2, expires_at=clock.now + 1)
    await insert_sessions(ctx, 4, expires_at=clock.now)
    await insert_sessions(ctx, 1, expires_at=clock.now + 1)
    assert await cleanup.sweep(ctx) == cleanup.SweepResult(**NOTHING | {"idempotency_keys": 3, "sessions": 4})
    assert await cleanup.sweep(ctx) == cleanup.SweepResult(**NOTHING)
    clock.pass_seconds(1)
    assert await cleanup.sweep(ctx) == cleanup.SweepResult(**NOTHING | {"idempotency_keys": 2, "sessions": 1})


async def test_a_hold_is_kept_for_a_retry_period_after_its_release(ctx: context.Context, clock: contexts.Clock) -> None:
    await holds.hold(ctx)
    (held,) = await holds.in_force(ctx)
    clock.pass_seconds(10 * 86_400)
    assert (await cleanup.sweep(ctx)).holds == 0
    await holds.release(ctx, held)
    clock.pass_seconds(3600)
    assert (await cleanup.sweep(ctx)).holds == 0
    clock.pass_seconds(2 * 86_400)
    assert (await cleanup.sweep(ctx)).holds == 1


async def test_the_status_of_provider_queues_of_a_dead_worker_is_removed(
    ctx: context.Context, clock: contexts.Clock
) -> None:
    async with ctx.store.transaction() as tx:
        await processes.put_queues(
            tx, [processes.QueueStatus("w1", "google", "paused", "slow down", clock.now, clock.now)]
        )
    clock.pass_seconds(600)
    assert (await cleanup.sweep(ctx)).provider_queues == 0
    clock.pass_seconds(1)
    assert (await cleanup.sweep(ctx)).provider_queues == 1
    async with ctx.store.reading() as tx:
        assert await processes.queues_since(tx, 0) == []


async def test_policies_of_destinations_go_when_they_expire_and_reports_after_three_days(
    ctx: context.Context, clock: contexts.Clock
) -> None:
    today = clock.now // (24 * 3600 * contexts.SECOND)
    result = tls_report.Result(tls_report.Policy(tls_report.PolicyType.NONE, "example.org"))
    async with ctx.store.transaction() as tx:
        for domain, until in (("old.example", clock.now), ("new.example", clock.now + 1)):
            await tls_policies.put_policy(tx, tls_policies.StoredPolicy(domain, "1", "text", 1, until))
        for day in (today - 3, today - 2):
            await tls_policies.add_sessions(tx, day, {"example.org": {result: 1}}, due_at={"example.org": 1})
    swept = await cleanup.sweep(ctx)
    assert (swept.mta_sts_policies, swept.tls_reports) == (1, 2)
    swept = await cleanup.sweep(ctx)
    assert (swept.mta_sts_policies, swept.tls_reports) == (0, 0)


@pytest.mark.parametrize("count", [store.SWEEP_ROWS, 2 * store.SWEEP_ROWS + 1])
async def test_many_rows_go_in_several_batches(ctx: context.Context, clock: contexts.Clock, count: int) -> None:
    await insert_keys(ctx, count, expires_at=clock.now)
    async with ctx.store.transaction() as tx:
        assert await messages.sweep_idempotency_keys(tx, now=clock.now) == store.SWEEP_ROWS
    assert (await cleanup.sweep(ctx)).idempotency_keys == count - store.SWEEP_ROWS


async def test_one_sweep_ends_even_when_there_is_always_more(
    ctx: context.Context, clock: contexts.Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cleanup, "MAX_BATCHES", 2)
    await insert_keys(ctx, 3 * store.SWEEP_ROWS, expires_at=clock.now)
    assert (await cleanup.sweep(ctx)).idempotency_keys == 2 * store.SWEEP_ROWS


async def test_the_key_of_a_message_goes_after_a_day_and_the_message_stays(
    ctx: context.Context, shop: str, clock: contexts.Clock
) -> None:
    await accepted_mail.accept(ctx, shop, key="order-7")
    clock.pass_seconds(limits.IDEMPOTENCY_KEY_SECONDS - 1)
    assert (await cleanup.sweep(ctx)).idempotency_keys == 0
    clock.pass_seconds(1)
    assert (await cleanup.sweep(ctx)).idempotency_keys == 1
    report = await operator_jobs.check_consistency(ctx)
    assert (report.counts.messages, report.counts.idempotency_keys, report.findings) == (1, 0, [])


def ended(clock: contexts.Clock, number: int, *, seconds: float, **changes: Any) -> webhooks.Delivery:
    """A delivery that ended so long ago."""
    at = clock.now - round(seconds * contexts.SECOND)
    return webhook_samples.delivery(number, state="succeeded", attempt_count=1, ended_at=at, **changes)


def made(clock: contexts.Clock, seconds: float, **changes: Any) -> webhooks.Delivery:
    """A delivery that was made so long ago."""
    at = clock.now - round(seconds * contexts.SECOND)
    delivery_id = identifiers.make(identifiers.WEBHOOK_DELIVERY, now=at, entropy=bytes(7))
    return webhook_samples.delivery(0, id=delivery_id, created_at=at, due_at=at, **changes)


async def left(ctx: context.Context) -> tuple[int, int, int]:
    """How many endpoints, deliveries and attempts there are."""
    found = [await samples.count(ctx.store, f"webhook{rest}") for rest in ("s", "_deliveries", "_attempts")]
    return found[0], found[1], found[2]


async def test_a_webhook_delivery_goes_seven_days_after_its_end_with_its_attempts(
    ctx: context.Context, clock: contexts.Clock
) -> None:
    both = [ended(clock, 1, seconds=WEEK_SECONDS), ended(clock, 2, seconds=WEEK_SECONDS - 1)]
    pending = made(clock, 60)
    await webhook_samples.add(
        ctx.store, webhook_samples.webhook(), pending, *both, *(webhook_samples.attempt(one) for one in both)
    )
    assert (await cleanup.sweep(ctx)).webhook_deliveries == 1
    assert [one.id for one in await webhook_samples.log(ctx.store)] == [pending.id, both[1].id]
    clock.pass_seconds(1)
    assert (await cleanup.sweep(ctx)).webhook_deliveries == 1
    assert (await cleanup.sweep(ctx)).webhook_deliveries == 0
    assert await left(ctx) == (1, 1, 0)


async def test_many_webhook_deliveries_go_in_several_batches(
    ctx: context.Context, clock: contexts.Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhooks, "SWEEP_ROWS", 2)
    rows = [ended(clock, number, seconds=WEEK_SECONDS) for number in range(5)]
    await webhook_samples.add(ctx.store, webhook_samples.webhook(), *rows, *map(webhook_samples.attempt, rows))
    assert (await cleanup.sweep(ctx)).webhook_deliveries == 5
    assert await left(ctx) == (1, 0, 0)


@pytest.mark.parametrize("count", [0, 1, 2, 5])
async def test_a_removed_endpoint_is_deleted_with_all_it_left_and_its_successor_stays(
    ctx: context.Context, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    monkeypatch.setattr(webhooks, "SWEEP_ROWS", 2)
    rows = [webhook_samples.delivery(number, attempt_count=1) for number in range(count)]
    await webhook_samples.add(ctx.store, webhook_samples.webhook(), *rows, *map(webhook_samples.attempt, rows))
    async with ctx.store.transaction() as tx:
        await webhooks.remove(tx, "whk_1", now=ctx.clock())
    await webhook_samples.add(ctx.store, webhook_samples.webhook("whk_2"), webhook_samples.delivery(1, "whk_2"))
    assert (await cleanup.sweep(ctx)).webhook_deliveries == count
    assert await left(ctx) == (1, 1, 0)
    assert len(await webhook_samples.log(ctx.store, "whk_2")) == 1


async def test_so_many_removed_endpoints_go_with_one_sweep(
    ctx: context.Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cleanup, "MAX_REMOVED_ENDPOINTS", 2)
    for number in range(3):
        await webhook_samples.add(ctx.store, webhook_samples.webhook(f"whk_{number}"))
        async with ctx.store.transaction() as tx:
            await webhooks.remove(tx, f"whk_{number}", now=ctx.clock())
    await cleanup.sweep(ctx)
    assert await left(ctx) == (1, 0, 0)
    await cleanup.sweep(ctx)
    assert await left(ctx) == (0, 0, 0)


async def test_what_could_not_be_sent_is_removed_seven_days_after_it_was_made(
    ctx: context.Context, clock: contexts.Clock
) -> None:
    disabled, enabled = webhook_samples.webhook(enabled=0), webhook_samples.webhook("whk_2", "acc_2")
    held = [made(clock, 5), made(clock, 4.5, state="waiting", attempt_count=1)]
    behind = made(clock, 4, webhook_id="whk_2", account_id="acc_2")
    await webhook_samples.add(ctx.store, disabled, enabled, *held, behind, webhook_samples.attempt(held[1]))
    clock.pass_seconds(WEEK_SECONDS - 6)
    assert (await cleanup.sweep(ctx)).webhook_deliveries == 0
    clock.pass_seconds(2)
    assert (await cleanup.sweep(ctx)).webhook_deliveries == 2
    assert await left(ctx) == (2, 1, 0)
    clock.pass_seconds(1)
    assert (await cleanup.sweep(ctx)).webhook_deliveries == 1


async def test_secrets_go_at_their_end(ctx: context.Context, clock: contexts.Clock) -> None:
    secrets = [webhook_samples.secret(1, expires_at=clock.now + contexts.SECOND), webhook_samples.secret(2)]
    await webhook_samples.add(ctx.store, webhook_samples.webhook(), *secrets)
    assert (await cleanup.sweep(ctx)).webhook_secrets == 0
    clock.pass_seconds(1)
    assert (await cleanup.sweep(ctx)).webhook_secrets == 1
    async with ctx.store.reading() as tx:
        assert await webhooks.secrets(tx, ["whk_1"], now=0) == [secrets[1]]


async def test_hours_go_that_no_chart_shows_any_more(ctx: context.Context, clock: contexts.Clock) -> None:
    now = mail_counts.hour_of(clock.now)
    rows = [
        mail_counts.CountIncrement(account_id="acc_1", hour=now - hours, messages=1)
        for hours in (185 * 24, 185 * 24 - 1, 0)
    ]
    async with ctx.store.transaction() as tx:
        await mail_counts.add_hourly(tx, rows)
        failures = [mail_counts.FailureIncrement("acc_1", row.hour, "google", "mailbox_full", 1, 0) for row in rows]
        await mail_counts.add_failures(tx, failures)
    swept = [await cleanup.sweep(ctx) for _ in range(2)]
    assert [(one.hourly_counts, one.failure_counts) for one in swept] == [(1, 1), (0, 0)]
    assert await samples.count(ctx.store, "hourly_counts") == 2
    clock.pass_seconds(3600)
    assert (await cleanup.sweep(ctx)).failure_counts == 1


# Long work leaves the store to others for half of the time.


@pytest.mark.parametrize("took, rested", [(0.25, 0.25), (30.0, 1.0)])
async def test_a_part_is_committed_and_then_rests_as_long_as_it_took_within_a_bound(
    ctx: context.Context, monkeypatch: pytest.MonkeyPatch, took: float, rested: float
) -> None:
    now = [0.0]
    rests: list[tuple[float, int]] = []

    async def work(tx: store.Transaction) -> str:
        await sessions.insert(tx, samples.session())
        now[0] += took
        return "done"

    async def sleep(seconds: float) -> None:
        rests.append((seconds, await samples.count(ctx.store, "sessions")))

    loop = types.SimpleNamespace(time=lambda: now[0])
    world = types.SimpleNamespace(get_running_loop=lambda: loop, sleep=sleep)
    monkeypatch.setattr(throttled_batches, "asyncio", world)
    assert await throttled_batches.run_batch(ctx, work) == "done"
    assert rests == [(rested, 1)]
