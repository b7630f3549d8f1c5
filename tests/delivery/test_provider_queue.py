"""A provider queue: its capacity, its workers, and that no job is lost when a worker or a connection ends."""

import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncIterator, Callable, Sequence

import pytest

from postroad import errors
from postroad.delivery import attempter, permits, provider_queue, routing
from postroad.model.delivery import adaptive_rate
from postroad.network.smtp import smtp_connection
from postroad.protocol.smtp import values
from postroad.services.operations import operator_jobs
from tests import smtp_peers
from tests.delivery import parts


async def finish(one: provider_queue.ProviderQueue) -> list[attempter.Job]:
    left = one.close()
    await one.finish()
    return left


def refused(host: routing.Host) -> smtp_connection.ConnectFailed:
    return smtp_connection.ConnectFailed(
        values.RecipientResult(
            values.Stage.CONNECT, cause=values.Cause.CONNECTION_REFUSED, detail=f"{host.name}: refused"
        )
    )


async def all_delivered(made: parts.Parts, jobs: Sequence[attempter.Job]) -> None:
    async def is_so() -> bool:
        return [await made.statuses(job.message[1]) for job in jobs] == [["delivered"]] * len(jobs)

    await parts.until(is_so)


async def test_jobs_are_sent_over_one_kept_connection_and_the_dispatcher_is_woken(url: str) -> None:
    async with parts.opened(url) as made, smtp_peers.serving() as peer:
        one = made.new_provider_queue(connections=1)
        jobs = await made.jobs(count=3, route=parts.route_to(parts.host_at(peer.port)))
        parts.give(one, jobs[:2])
        await all_delivered(made, jobs[:2])
        parts.give(one, jobs[2:])
        await all_delivered(made, jobs)
        assert peer.connections == 1
        assert len(made.wakes) == 3
        assert made.ctx.metrics.connections.values == {(): 1}
        assert await finish(one) == []
        assert made.ctx.metrics.connections.values == {(): 0}
        assert one.is_idle
        assert (await operator_jobs.check_consistency(made.ctx)).findings == []


async def test_room_counts_what_waits_and_what_is_expected_and_is_there_when_half_of_the_provider_queue_is_free(
    url: str,
) -> None:
    async with parts.opened(url, time=parts.Time()) as made:
        one = made.new_provider_queue(connections=10)
        whole = adaptive_rate.FIRST_CONNECTIONS * provider_queue.JOBS_PER_CONNECTION
        assert one.capacity_left() == whole
        (job,) = await made.jobs(route=parts.route_to(parts.host_at(25)))
        for _ in range(whole // 2):
            one.capacity.reserve([job])
        assert one.capacity_left() == whole // 2
        assert not one.is_idle
        one.capacity.reserve([job])
        assert one.capacity_left() == 0
        for _ in range(whole):
            one.capacity.reserve([job])
        assert one.capacity_left() == 0
        for _ in range(whole + whole // 2 + 1):
            one.capacity.cancel_reserved(job)
        assert one.is_idle


async def test_a_slow_provider_queue_takes_no_more_than_it_can_soon_send(url: str) -> None:
    time = parts.Time()
    async with parts.opened(url, time=time) as made:
        one = made.new_provider_queue(rate=3)
        assert one.capacity_left() == 6
        one.adaptive_rate.slow_down(time.now)
        assert one.capacity_left() == 0
        time.now += adaptive_rate.FIRST_PAUSE_SECONDS
        assert one.capacity_left() == 3
        slow = made.new_provider_queue(rate=1)
        for _ in range(3):
            slow.adaptive_rate.slow_down(time.now)
            time.now += adaptive_rate.MAX_PAUSE_SECONDS
        assert slow.capacity_left() == 1
        assert slow.adaptive_rate.take(time.now) == 0
        # The next message is due in eight seconds: it is better kept in the store.
        assert slow.capacity_left() == 0
        time.now += 7
        assert slow.capacity_left() == 1


async def test_a_job_that_comes_while_the_last_worker_takes_leave_is_sent(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(smtp_connection, "QUIT_SECONDS", 0.2)
    script: smtp_peers.Script = {"QUIT": smtp_peers.SILENCE}
    async with parts.opened(url) as made, smtp_peers.serving(script) as peer:
        one = made.new_provider_queue(connections=1, most=1)
        jobs = await made.jobs(count=2, route=parts.route_to(parts.host_at(peer.port)))
        parts.give(one, jobs[:1])
        await peer.wait_for("QUIT")
        parts.give(one, jobs[1:])
        assert len(one._workers) == 1
        await all_delivered(made, jobs)
        assert await finish(one) == []


async def test_a_connection_that_has_carried_enough_gives_its_permit_to_whoever_waits(url: str) -> None:
    async with parts.opened(url, connections=1) as made, smtp_peers.serving() as peer:
        busy, other = made.new_provider_queue(connections=1, most=1), made.new_provider_queue(connections=1, most=1)
        jobs = await made.jobs(count=4, route=parts.route_to(parts.host_at(peer.port)))
        parts.give(busy, jobs[:3])
        parts.give(other, jobs[3:])
        await all_delivered(made, jobs)
        assert f"<{jobs[3].message[1]}" in peer.transactions[1].content.decode()
        assert peer.connections == 4
        await finish(busy)
        await finish(other)


async def test_workers_leave_when_there_is_no_place_for_them_any_more(url: str) -> None:
    opening, most_opening = 0, list[int]()
    both = asyncio.Event()

    async def connect(host: routing.Host) -> smtp_connection.SmtpConnection:
        nonlocal opening
        opening += 1
        most_opening.append(opening)
        if opening == adaptive_rate.FIRST_CONNECTIONS:
            both.set()
        await both.wait()
        await asyncio.sleep(0.001)
        opening -= 1
        raise refused(host)

    async with parts.opened(url, connecting=connect) as made:
        one = made.new_provider_queue()
        one.adaptive_rate.allowed_connections = (
            1 + adaptive_rate.FIRST_CONNECTIONS
        )  # one of them is kept for another account
        there = [parts.host_at(25, address=f"192.0.2.{number}") for number in range(1, 7)]
        jobs = await made.jobs(count=6, route=parts.route_to(there[0]))
        for job, host in zip(jobs, there, strict=True):
            job.route = parts.route_to(host)
        parts.give(one, jobs)
        await parts.until(lambda: one.is_idle)
        assert most_opening == [1, 2, 1, 1, 1, 1]
        await made.services.recorder.close(seconds=parts.TIMEOUT_SECONDS)
        assert [await made.statuses(job.message[1]) for job in jobs] == [["deferred"]] * 6


async def test_a_destination_is_quick_when_it_has_answered_and_not_when_it_is_silent(url: str) -> None:
    asked: list[bool] = []

    class Permits(permits.Permits):
        @contextlib.asynccontextmanager
        async def acquire(
            self, account_id: str, *, is_responsive: bool, on_slow: Callable[[], None], is_urgent: bool = False
        ) -> AsyncIterator[permits.Permit]:
            asked.append(is_responsive)
            async with super().acquire(
                account_id, is_responsive=is_responsive, on_slow=on_slow, is_urgent=is_urgent
            ) as permit:
                yield permit

    async with parts.opened(url) as made, smtp_peers.serving() as peer:
        made.services = dataclasses.replace(made.services, permits=Permits(10))
        one = made.new_provider_queue(connections=1, most=1)
        here = parts.route_to(parts.host_at(peer.port))
        first, second, third, last = await made.jobs(count=4, route=here)
        for job in (first, second):
            parts.give(one, [job])
            await parts.until(lambda: one.is_idle)
        with smtp_peers.refusing_port() as port:
            third.route = parts.route_to(parts.host_at(port))
            parts.give(one, [third])
            await parts.until(lambda: one.is_idle)
        parts.give(one, [last])
        await parts.until(lambda: one.is_idle)
        assert asked == [False, True, True, False]


async def test_a_provider_queue_that_was_asked_to_slow_down_hands_back_what_it_has_and_keeps_no_room(url: str) -> None:
    script: smtp_peers.Script = {"MAIL": "451 4.7.0 too many messages, slow down"}
    async with parts.opened(url) as made, smtp_peers.serving(script) as peer:
        one = made.new_provider_queue(connections=1)
        jobs = await made.jobs(count=3, route=parts.route_to(parts.host_at(peer.port)))
        parts.give(one, jobs)
        await parts.until(lambda: len(made.held) == 0)
        statuses = [await made.statuses(job.message[1]) for job in jobs]
        assert statuses == [["deferred"], ["queued"], ["queued"]]
        assert len(await made.ready()) == 2
        assert one.capacity_left() == 0
        assert "slow down" in one.last_error
        await finish(one)


async def test_a_bug_with_one_message_postpones_it_and_slows_nobody_down(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with parts.opened(url) as made, smtp_peers.serving() as peer:
        one = made.new_provider_queue(connections=1)
        jobs = await made.jobs(count=2, route=parts.route_to(parts.host_at(peer.port)))
        attempt = made.services.attempter.attempt

        async def fail_with_the_first(
            job: attempter.Job, slot: attempter.ConnectionSlot, *, max_deliveries: int
        ) -> attempter.JobResult | None:
            if job is jobs[0]:
                raise RuntimeError("a bug")
            return await attempt(job, slot, max_deliveries=max_deliveries)

        monkeypatch.setattr(made.services.attempter, "attempt", fail_with_the_first)
        parts.give(one, jobs)
        await all_delivered(made, jobs[1:])
        await finish(one)
        await made.services.recorder.close(seconds=parts.TIMEOUT_SECONDS)
        assert await made.statuses(jobs[0].message[1]) == ["deferred"]
        assert "delivery_failed" in made.events()
        assert one.adaptive_rate.state(made.services.clock()) == "open"


async def test_a_worker_that_dies_is_reported_and_somebody_takes_over(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provider_queue, "ERROR_BACKOFF_SECONDS", 0.001)
    async with parts.opened(url) as made, smtp_peers.serving() as peer:
        one = made.new_provider_queue(connections=1, most=1)
        jobs = await made.jobs(count=2, route=parts.route_to(parts.host_at(peer.port)))

        close, failed = attempter.ConnectionSlot.close, list[attempter.ConnectionSlot]()

        async def fail_once(slot: attempter.ConnectionSlot) -> None:
            if slot.connection is not None and not failed:
                failed.append(slot)
                raise RuntimeError("a bug")
            await close(slot)

        monkeypatch.setattr(attempter.ConnectionSlot, "close", fail_once)
        parts.give(one, jobs)
        await all_delivered(made, jobs)
        await finish(one)
        assert "worker_failed" in made.events()
        assert made.ctx.metrics.connections.values == {(): 0}


async def test_idle_workers_end_when_their_time_is_over(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provider_queue, "IDLE_SECONDS", 0.1)
    async with parts.opened(url) as made, smtp_peers.serving() as peer:
        one = made.new_provider_queue(connections=1)
        parts.give(one, await made.jobs(route=parts.route_to(parts.host_at(peer.port))))
        await peer.wait_for("QUIT")
        await parts.until(lambda: one.is_idle)


async def test_an_idle_connection_to_another_host_makes_room(url: str) -> None:
    async with parts.opened(url) as made, smtp_peers.serving() as here, smtp_peers.serving() as there:
        one = made.new_provider_queue(connections=1)
        jobs = await made.jobs(count=2, route=parts.route_to(parts.host_at(here.port)))
        parts.give(one, jobs[:1])
        await all_delivered(made, jobs[:1])
        await parts.until(lambda: bool(one._idle))
        jobs[1].route = parts.route_to(parts.host_at(there.port))
        parts.give(one, jobs[1:])
        await all_delivered(made, jobs)
        assert (len(here.transactions), len(there.transactions)) == (1, 1)
        await finish(one)


async def test_a_stop_returns_what_was_not_begun_and_waits_for_what_was(url: str) -> None:
    script: smtp_peers.Script = {"CONTENT": smtp_peers.Drip("250 2.0.0 taken", 0.01)}
    async with parts.opened(url) as made, smtp_peers.serving(script) as peer:
        one = made.new_provider_queue(connections=1)
        jobs = await made.jobs(count=3, route=parts.route_to(parts.host_at(peer.port)))
        parts.give(one, jobs)
        await peer.wait_for("CONTENT")
        assert one.close() == jobs[1:]
        await one.finish()
        await made.services.recorder.close(seconds=parts.TIMEOUT_SECONDS)
        assert await made.statuses(jobs[0].message[1]) == ["delivered"]
        assert len(peer.transactions) == 1
        assert one.is_idle


@pytest.mark.parametrize("verb", ["EHLO", "MAIL"])
async def test_a_cut_ends_what_hangs_and_hands_it_back_uncounted(url: str, verb: str) -> None:
    async with parts.opened(url) as made, smtp_peers.serving({verb: smtp_peers.SILENCE}) as peer:
        one = made.new_provider_queue(connections=1)
        (job,) = await made.jobs(route=parts.route_to(parts.host_at(peer.port), parts.host_at(peer.port)))
        parts.give(one, [job])
        await peer.wait_for(verb)
        assert await parts.cut(one) == []
        assert await made.statuses(job.message[1]) == ["queued"]
        assert await made.ready() == [job.claim.recipient_id]
        assert peer.connections == 1


async def test_what_was_cut_after_the_final_dot_is_recorded_as_in_doubt(url: str) -> None:
    async with parts.opened(url) as made, smtp_peers.serving({"CONTENT": smtp_peers.SILENCE}) as peer:
        one = made.new_provider_queue(connections=1)
        (job,) = await made.jobs(route=parts.route_to(parts.host_at(peer.port)))
        parts.give(one, [job])
        await peer.wait_for("CONTENT")
        await parts.cut(one)
        await made.services.recorder.close(seconds=parts.TIMEOUT_SECONDS)
        assert await made.statuses(job.message[1]) == ["deferred"]
        assert made.log[-1]["in_doubt"] is True


@pytest.mark.parametrize("large_bytes", [10, attempter.LARGE_MESSAGE_BYTES])
async def test_a_message_is_read_when_its_turn_comes_and_not_kept(
    url: str, large_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempter, "LARGE_MESSAGE_BYTES", large_bytes)
    async with parts.opened(url) as made, smtp_peers.serving() as peer:
        one = made.new_provider_queue(connections=1)
        await made.accept()
        jobs = attempter.jobs_of(await made.claim(), parts.route_to(parts.host_at(peer.port)))
        parts.give(one, jobs)
        await all_delivered(made, jobs)
        await parts.until(lambda: jobs[0].transaction is None)  # while its connection waits for the next one
        assert not one.is_idle
        await finish(one)


async def test_a_message_that_was_not_read_ahead_is_read_when_its_turn_comes_and_needs_no_place(url: str) -> None:
    async with parts.opened(url) as made, smtp_peers.serving() as peer, contextlib.AsyncExitStack() as places:
        for number in range(attempter.MAX_CONCURRENT_LARGE):
            await places.enter_async_context(made.services.message_loader.large.hold(f"acc_{number}"))
        one = made.new_provider_queue(connections=1)
        await made.accept()
        jobs = attempter.jobs_of(await made.claim(), parts.route_to(parts.host_at(peer.port)))
        parts.give(one, jobs)
        await all_delivered(made, jobs)
        await finish(one)


async def test_a_stranger_that_does_not_read_keeps_few_of_the_places_for_large_messages(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempter, "LARGE_MESSAGE_BYTES", 10)
    async with (
        parts.opened(url) as made,
        smtp_peers.serving({"RECEIVING": smtp_peers.SILENCE}) as stalling,
        smtp_peers.serving() as healthy,
    ):
        bad, good = made.new_provider_queue(), made.new_provider_queue()
        for one in (bad, good):
            one.adaptive_rate.allowed_connections = 10
            one._is_responsive = True
        for _ in range(10):
            await made.accept()
        jobs = attempter.jobs_of(await made.claim(), parts.route_to(parts.host_at(stalling.port)))
        parts.give(bad, jobs)
        await parts.until(lambda: stalling.verbs().count("DATA") == attempter.MAX_CONCURRENT_LARGE_PER_DESTINATION)
        await made.accept()
        others = attempter.jobs_of(await made.claim(), parts.route_to(parts.host_at(healthy.port)))
        parts.give(good, others)
        await all_delivered(made, others)
        assert stalling.connections == attempter.MAX_CONCURRENT_LARGE_PER_DESTINATION
        # The others have waited for a place, not in a worker.
        assert set(bad.close()) <= set(jobs)
        bad.abort()
        await asyncio.gather(bad.finish(), finish(good))


async def test_while_others_keep_all_places_for_large_messages_small_ones_are_sent(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempter, "LARGE_MESSAGE_BYTES", 2_000)
    monkeypatch.setattr(provider_queue, "LOOKAHEAD_SECONDS", 0.01)
    async with parts.opened(url) as made, smtp_peers.serving() as peer, contextlib.AsyncExitStack() as places:
        for number in range(attempter.MAX_CONCURRENT_LARGE):
            await places.enter_async_context(made.services.message_loader.large.hold(f"acc_{number}"))
        one = made.new_provider_queue(connections=1)
        route = parts.route_to(parts.host_at(peer.port))
        await made.accept(text="long " * 1_000)
        large = attempter.jobs_of(await made.claim(), route)
        small = await made.jobs(route=route)
        parts.give(one, [*large, *small])
        await all_delivered(made, small)
        await parts.until(lambda: not one._large_tasks)
        assert await made.ready() == [large[0].claim.recipient_id]
        assert await made.statuses(large[0].message[1]) == ["queued"]
        await finish(one)


async def test_a_large_message_that_the_store_does_not_give_is_handed_back(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempter, "LARGE_MESSAGE_BYTES", 10)
    monkeypatch.setattr(provider_queue, "ERROR_BACKOFF_SECONDS", 0.0)
    async with parts.opened(url) as made, smtp_peers.serving() as peer:
        one = made.new_provider_queue(connections=1)
        await made.accept()
        (job,) = attempter.jobs_of(await made.claim(), parts.route_to(parts.host_at(peer.port)))

        async def fail(*_: object) -> None:
            raise errors.TemporaryFailure("away", retry_after=1)

        monkeypatch.setattr(made.services.message_loader, "prepare", fail)
        parts.give(one, [job])
        await parts.until(lambda: one.is_idle)
        assert await made.ready() == [job.claim.recipient_id]
        assert len(made.held) == 0
        assert made.events() == ["message_load_deferred"]
        assert peer.connections == 0


async def test_a_message_without_content_bounces_without_a_connection(url: str) -> None:
    async with parts.opened(url) as made, smtp_peers.serving() as peer:
        one = made.new_provider_queue(connections=1)
        (job,) = await made.jobs(route=parts.route_to(parts.host_at(peer.port)))
        job.transaction, job.failure = None, attempter.CONTENT_MISSING
        parts.give(one, [job])
        await parts.until(lambda: one.is_idle)
        await made.services.recorder.close(seconds=parts.TIMEOUT_SECONDS)
        assert await made.statuses(job.message[1]) == ["bounced"]
        assert peer.connections == 0


async def test_what_no_host_may_be_tried_for_is_handed_back(url: str) -> None:
    async with parts.opened(url) as made:
        host = parts.host_at(1)
        parts.break_down(made.hosts, host)
        one = made.new_provider_queue()
        (job,) = await made.jobs(route=parts.route_to(host))
        parts.give(one, [job])
        await parts.until(lambda: one.is_idle)
        assert await made.ready() == [job.claim.recipient_id]
