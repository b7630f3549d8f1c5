"""What metrics show of the store: true, not too often, and missing rather than wrong when the store is away."""

import contextlib
import dataclasses
import datetime as dt
from pathlib import Path

import pytest
import trustme

from postroad import build_version, context, errors
from postroad.mail.accept import queue_limit
from postroad.services.operations import gauges
from postroad.storage.engine import store
from postroad.storage.mail import queue
from postroad.storage.operations import certificates, processes
from tests import accepted_mail, contexts
from tests.contexts import SECOND, Clock
from tests.storage import webhook_samples


async def test_an_empty_queue_is_shown_as_nothing_that_waits(ctx: context.Context) -> None:
    await gauges.Gauges().refresh(ctx)
    shown = ctx.metrics
    assert shown.queue.values == {("ready",): 0, ("waiting",): 0, ("scheduled",): 0, ("sending",): 0, ("held",): 0}
    assert (shown.oldest.values, shown.overdue.values, shown.provider_queues.values) == ({(): 0}, {(): 0}, {})
    assert shown.webhook_backlog.values == {("ready",): 0, ("waiting",): 0, ("held",): 0}
    assert shown.webhook_overdue.values == {(): 0}
    assert shown.store_up.values == {(): 1}
    assert shown.build_info.values == {(build_version.current(),): 1}


async def test_the_size_of_the_database_is_shown_and_that_of_its_disk_where_it_is_on_this_host(
    ctx: context.Context,
) -> None:
    await gauges.Gauges().refresh(ctx)
    shown = ctx.metrics
    assert shown.database_bytes.values[()] > 100_000
    is_sqlite = ctx.store.dialect == "sqlite"
    for gauge in (shown.database_free_bytes, shown.disk_bytes, shown.disk_free_bytes):
        assert list(gauge.values) == ([()] if is_sqlite else [])
    if is_sqlite:
        assert 0 < shown.disk_free_bytes.values[()] < shown.disk_bytes.values[()]


async def test_the_space_of_waiting_mail_is_shown(
    ctx: context.Context, shop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await gauges.Gauges().refresh(ctx)
    shown = ctx.metrics
    assert (shown.stored_bytes.values, shown.near_quota.values) == ({("live",): 0, ("test",): 0}, {(): 0})
    for is_test in (False, True):
        await accepted_mail.accept(ctx, shop, text="x" * 900_000, is_test=is_test)
    monkeypatch.setattr(queue_limit, "TEST_MEGABYTES", 1)
    await gauges.Gauges().refresh(contexts.with_settings(ctx, "quotas", stored_megabytes=1))
    assert {labels: value // 100_000 for labels, value in shown.stored_bytes.values.items()} == {
        ("live",): 9,
        ("test",): 9,
    }
    assert shown.near_quota.values == {(): 1}


async def test_the_queue_is_counted_by_state_and_by_age(ctx: context.Context, shop: str, clock: Clock) -> None:
    await accepted_mail.accept(ctx, shop, to=("ada@example.net",))
    await accepted_mail.accept(ctx, shop, to=("bob@example.net",))
    async with ctx.store.transaction() as tx:
        wanted = [queue.ClaimRequest(queue.queue_key_of("example.net", shop), 1)]
        (claimed,) = await queue.claim(tx, wanted, lease_until=clock.now + 60 * SECOND, worker="a:1:x")
        await queue.postpone(tx, [(claimed.key, clock.now + 300 * SECOND)], worker="a:1:x")
    clock.pass_seconds(30)
    await accepted_mail.accept(ctx, shop, to=("eve@example.org",))
    clock.pass_seconds(15)
    await gauges.Gauges().refresh(ctx)
    assert ctx.metrics.queue.values == {
        ("ready",): 2,
        ("waiting",): 1,
        ("scheduled",): 0,
        ("sending",): 0,
        ("held",): 0,
    }
    assert ctx.metrics.oldest.values == {(): 45}
    assert ctx.metrics.overdue.values == {(): 45}


async def test_one_that_becomes_ready_after_a_wait_is_overdue_only_since_then(
    ctx: context.Context, shop: str, clock: Clock
) -> None:
    await accepted_mail.accept(ctx, shop)
    async with ctx.store.transaction() as tx:
        wanted = [queue.ClaimRequest(queue.queue_key_of("example.net", shop), 1)]
        (claimed,) = await queue.claim(tx, wanted, lease_until=clock.now + 60 * SECOND, worker="a:1:x")
        await queue.postpone(tx, [(claimed.key, clock.now + 300 * SECOND)], worker="a:1:x")
    clock.pass_seconds(310)
    async with ctx.store.transaction() as tx:
        await queue.promote(tx, now=clock.now, limit=10)
    await gauges.Gauges().refresh(ctx)
    assert ctx.metrics.oldest.values == {(): 310}
    assert ctx.metrics.overdue.values == {(): 10}


async def test_events_are_counted_by_state_and_those_of_disabled_endpoints_make_nothing_overdue(
    ctx: context.Context, clock: Clock
) -> None:
    now = clock.now
    enabled, disabled = webhook_samples.webhook(), webhook_samples.webhook("whk_2", "acc_2", enabled=0)
    await webhook_samples.add(
        ctx.store,
        enabled,
        disabled,
        webhook_samples.delivery(1, due_at=now - 5 * SECOND),
        # An older event whose time came later: it waits for its second attempt.
        webhook_samples.delivery(0, due_at=now - 2 * SECOND, attempt_count=1),
        webhook_samples.delivery(2, state="waiting", due_at=now - 90 * SECOND),
        webhook_samples.delivery(3, state="failed", ended_at=now, due_at=now - 80 * SECOND),
        *(webhook_samples.delivery(each, "whk_2", "acc_2", due_at=now - 3600 * SECOND) for each in range(3)),
    )
    await gauges.Gauges().refresh(ctx)
    assert ctx.metrics.webhook_backlog.values == {("ready",): 2, ("waiting",): 1, ("held",): 3}
    assert ctx.metrics.webhook_overdue.values == {(): 5}


async def test_provider_queues_are_counted_by_provider_and_only_those_of_live_workers(
    ctx: context.Context, clock: Clock
) -> None:
    async with ctx.store.transaction() as tx:
        await processes.put_queues(
            tx,
            [
                processes.QueueStatus("a:1:x", "google", "paused", "421", clock.now, clock.now),
                processes.QueueStatus("a:1:x", "mx.example.net", "blocked", "refused", clock.now, clock.now),
                processes.QueueStatus("a:1:x", "mx.example.org", "blocked", "refused", clock.now, clock.now),
                processes.QueueStatus("dead:1:x", "yahoo", "blocked", "refused", clock.now, clock.now - 600 * SECOND),
            ],
        )
    await gauges.Gauges().refresh(ctx)
    assert ctx.metrics.provider_queues.values == {("google", "paused"): 1, ("others", "blocked"): 2}


async def test_a_look_is_good_for_some_seconds(
    ctx: context.Context, shop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = gauges.Gauges()
    await looks.refresh(ctx)
    await accepted_mail.accept(ctx, shop)
    await looks.refresh(ctx)
    assert ctx.metrics.queue.values["ready",] == 0
    monkeypatch.setattr(looks, "_valid_until", float("-inf"))
    await looks.refresh(ctx)
    assert ctx.metrics.queue.values["ready",] == 1


class Away:
    """A store that fails in a way of the test's choice."""

    dialect = "sqlite"

    def __init__(self, problem: Exception) -> None:
        self._problem = problem

    def scanning(self, _party: str = "") -> contextlib.AbstractAsyncContextManager[store.Transaction]:
        raise self._problem

    transaction = leasing = reading = looking_up = scanning

    async def close(self) -> None:
        pass


@pytest.mark.parametrize("problem", [errors.ServiceUnavailable("away"), TimeoutError()], ids=repr)
async def test_a_store_that_is_unavailable_is_reported_and_its_gauges_are_not(
    ctx: context.Context, problem: Exception
) -> None:
    await gauges.Gauges().refresh(ctx)
    await gauges.Gauges().refresh(dataclasses.replace(ctx, store=Away(problem)))
    shown = ctx.metrics
    assert (shown.queue.values, shown.oldest.values, shown.overdue.values) == ({}, {}, {})
    assert (shown.webhook_backlog.values, shown.webhook_overdue.values) == ({}, {})
    assert shown.store_up.values == {(): 0}


async def test_the_time_left_of_certificates_is_shown_for_files_and_for_acme(
    ctx: context.Context, clock: Clock, tmp_path: Path
) -> None:
    file = tmp_path / "chain.pem"
    expires = dt.datetime.fromtimestamp(clock.now / SECOND + 3600, dt.UTC)
    trustme.CA().issue_cert("mail.example.com", not_after=expires).cert_chain_pems[0].write_to_path(str(file))
    async with ctx.store.transaction() as tx:
        key = certificates.Key(ctx.settings.acme.directory, "mail.example.com")
        await certificates.claim(tx, key, due_by=0, now=0, until=0)
        await certificates.put(
            tx,
            key,
            chain="chain",
            private_key=b"",
            issued_at=0,
            expires_at=clock.now + 7200 * SECOND,
            due_at=0,
        )
    await gauges.Gauges().refresh(contexts.with_settings(ctx, "acme", names=("mail.example.com",)))
    assert ctx.metrics.certificates.values == {("http",): 7200}
    await gauges.Gauges().refresh(contexts.with_settings(ctx, "tls", certificate=str(file)))
    assert ctx.metrics.certificates.values == {("http",): 3600}
