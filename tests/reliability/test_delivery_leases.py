"""Leases: renewed as long as their worker lives, lost when it does not, and a late result changes nothing final."""

import signal
from pathlib import Path

import pytest

from postroad.delivery import recorder as delivery_recorder
from postroad.storage.mail import queue
from tests import contexts
from tests.delivery import engine_harness
from tests.reliability import delivery_harness, service_process, sinks
from tests.reliability.sinks import Point


async def test_a_lease_is_renewed_while_a_peer_takes_longer_than_it_lasts(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery_recorder, "RENEWALS_PER_LEASE", 1_000)
    clock = contexts.Clock()
    async with sinks.running() as sink:
        tables = delivery_harness.sections(sink)
        async with (
            delivery_harness.open_harness(url, tables, clock=clock) as harness,
            delivery_harness.open_context(url, tables, clock=clock) as other,
            engine_harness.running(harness.ctx) as (_, log),
            engine_harness.running(other) as (_, other_log),
        ):
            sink.hold(Point.CONTENT)
            addresses = await harness.send()
            await sink.waiting(Point.CONTENT)

            async def is_renewed() -> bool:
                (row,) = await harness.rows()
                return row.due_at == clock.now + delivery_harness.LEASE_SECONDS * contexts.SECOND

            for _ in range(6):
                clock.pass_seconds(delivery_harness.LEASE_SECONDS * 0.8)
                await service_process.until(is_renewed)
            sink.release(Point.CONTENT)
            await harness.finished()
            assert sink.connections == 1
            await harness.prove(addresses, sink)
        assert not [line for line in (*log, *other_log) if line["event"] == "previous_attempt_unrecorded"]


async def test_a_process_that_stood_still_for_too_long_changes_nothing_final(url: str, tmp_path: Path) -> None:
    async with sinks.running() as sink:
        tables = delivery_harness.sections(sink)
        async with (
            delivery_harness.open_harness(url, tables) as harness,
            delivery_harness.process(tmp_path / "process", url, tables) as service,
        ):
            await service.start()
            sink.hold(Point.CONTENT)
            addresses = await harness.send()
            await sink.waiting(Point.CONTENT)
            service.process.send_signal(signal.SIGSTOP)
            first = sink.let_others_pass(Point.CONTENT)
            await harness.end_leases()
            await harness.deliver_all()
            assert await harness.statuses() == {"delivered": 1}

            sink.answer = lambda _recipients: "550 5.1.1 nobody here"
            first.set()
            service.process.send_signal(signal.SIGCONT)

            async def is_reported() -> bool:
                return len(await harness.attempts()) == 2

            await service_process.until(is_reported)
            assert await service.stop() == 0
            assert service.errors() == []
            # The reply it got is in the log of attempts, and nowhere else.
            assert {verdict for _, verdict, _, _ in await harness.attempts()} == {"delivered", "bounced"}
            assert await harness.attempt_counts() == {addresses[0]: 1}
            await harness.prove(addresses, sink)


async def test_a_worker_that_lost_its_leases_begins_nothing_that_is_no_longer_its_own(url: str) -> None:
    clock, standing_clock = contexts.Clock(), contexts.Clock()
    async with sinks.running() as sink:
        tables = delivery_harness.sections(sink, pool_connections=1)
        async with (
            delivery_harness.open_harness(url, tables, clock=clock) as harness,
            delivery_harness.open_context(url, tables, clock=standing_clock) as other,
            engine_harness.running(other),
        ):
            sink.hold(Point.CONTENT)
            addresses = await harness.send(3)
            # One is being sent, and two are claimed and wait for its connection.
            await sink.waiting(Point.CONTENT)
            await harness.held(3)
            first = sink.let_others_pass(Point.CONTENT)
            # Time passes for everybody else, who takes over; then it goes on here.
            clock.pass_seconds(2 * delivery_harness.LEASE_SECONDS)
            await harness.deliver_all()
            assert sorted(sink.recipients) == sorted(addresses)
            standing_clock.now = clock.now
            first.set()
            await sink.got(len(addresses) + 1)
        # Only the one that was on its way has two copies.
        async with delivery_harness.open_context(url, tables) as ctx:
            await delivery_harness.DeliveryHarness(ctx, harness.account_id).prove(
                addresses, sink, doubts={addresses[0]: 1}
            )


@pytest.mark.parametrize("url", ["postgres"], indirect=True)
async def test_a_renewal_does_not_wait_for_results_that_are_being_recorded(url: str) -> None:
    """They hold some of the same rows, in whatever order: who waits for the other could wait for ever."""
    async with sinks.running() as sink:
        tables = delivery_harness.sections(sink)
        async with (
            delivery_harness.open_harness(url, tables) as harness,
            delivery_harness.open_context(url, tables) as other,
        ):
            await harness.send(2)
            async with harness.ctx.store.transaction() as tx:
                wanted = [
                    queue.ClaimRequest(queue_key, 10) for queue_key in await queue.queue_keys(tx, after="", limit=10)
                ]
                claims = await queue.claim(tx, wanted, lease_until=10, worker="one")
            first, second = (claim.key for claim in claims)
            async with harness.ctx.store.transaction() as recorder:
                assert await queue.postpone(recorder, [(second, 20)], worker="one") == [second]
                async with other.store.transaction() as renewing:
                    assert await queue.extend(renewing, [first, second], lease_until=30, worker="one") == [first]
                assert await queue.postpone(recorder, [(first, 20)], worker="one") == [first]
