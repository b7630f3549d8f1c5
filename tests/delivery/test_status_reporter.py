"""The stored status of provider queues: why mail waits, repeated as a heartbeat, and removed at the end."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from postroad import errors
from postroad.delivery import dispatcher as delivery_dispatcher
from postroad.delivery import provider_queue as delivery_provider_queue
from postroad.model.delivery import adaptive_rate
from postroad.storage.engine import store
from postroad.storage.operations import processes
from tests.contexts import SECOND
from tests.delivery import parts

HOST = parts.host_at(25, address="192.0.2.1")


@contextlib.asynccontextmanager
async def reporting_to_log(
    url: str,
) -> AsyncIterator[tuple[parts.Parts, delivery_dispatcher.Dispatcher, delivery_provider_queue.StatusReporter]]:
    async with parts.opened(url) as made:
        dispatcher = made.dispatching()
        yield (
            made,
            dispatcher,
            delivery_provider_queue.StatusReporter(
                made.ctx, dispatcher.provider_queues, made.hosts, made.held, made.services.log
            ),
        )


async def reported(made: parts.Parts) -> list[processes.QueueStatus]:
    async with made.ctx.store.reading() as tx:
        return await processes.queues_since(tx, 0)


async def test_only_provider_queues_that_are_not_simply_open_are_reported(database_url: str) -> None:
    async with reporting_to_log(database_url) as (made, dispatcher, report):
        now = asyncio.get_running_loop().time()
        dispatcher.provider_queues.of(parts.route_to(parts.host_at(26), name="open"))
        paused = dispatcher.provider_queues.of(parts.route_to(parts.host_at(26), name="paused"))
        paused.adaptive_rate.slow_down(now, 300)
        paused.last_error = "slow down"
        dispatcher.provider_queues.of(parts.route_to(HOST, name="blocked"))
        parts.break_down(made.hosts, HOST)
        slowed = dispatcher.provider_queues.of(parts.route_to(parts.host_at(26), name="slowed"))
        slowed.adaptive_rate.slow_down(now - adaptive_rate.FIRST_PAUSE_SECONDS)
        await report.publish()
        seen = {provider_queue.name: provider_queue for provider_queue in await reported(made)}
        assert {name: provider_queue.state for name, provider_queue in seen.items()} == {
            "paused": "paused",
            "blocked": "blocked",
            "slowed": "slowed",
        }
        assert seen["paused"].worker == parts.WORKER
        assert seen["paused"].reason == "slow down"
        assert abs(seen["paused"].until - made.clock() - 300 * SECOND) < 60 * SECOND
        assert seen["slowed"].until == seen["slowed"].updated_at == made.clock()


async def test_nothing_is_written_while_nothing_changes_except_a_sign_of_life_now_and_then(url: str) -> None:
    async with reporting_to_log(url) as (made, dispatcher, report):
        one = dispatcher.provider_queues.of(parts.route_to(HOST))
        one.adaptive_rate.slow_down(asyncio.get_running_loop().time() - adaptive_rate.FIRST_PAUSE_SECONDS)
        await report.publish()
        first = made.clock()
        made.clock.pass_seconds(delivery_provider_queue.REPEAT_SECONDS)
        await report.publish()
        assert [provider_queue.updated_at for provider_queue in await reported(made)] == [first]
        made.clock.pass_seconds(1)
        await report.publish()
        assert [provider_queue.updated_at for provider_queue in await reported(made)] == [made.clock()]


async def test_the_status_of_a_provider_queue_that_is_open_again_or_dropped_is_removed(url: str) -> None:
    async with reporting_to_log(url) as (made, dispatcher, report):
        for name in ("first", "second"):
            one = dispatcher.provider_queues.of(parts.route_to(HOST, name=name))
            one.adaptive_rate.slow_down(asyncio.get_running_loop().time(), 300)
        await report.publish()
        del dispatcher.provider_queues.by_name["first"], dispatcher.provider_queues.routes["first"]
        await report.publish()
        assert [provider_queue.name for provider_queue in await reported(made)] == ["second"]
        dispatcher.provider_queues.by_name["second"] = made.new_provider_queue()
        await report.publish()
        assert await reported(made) == []


async def test_a_worker_that_stops_takes_back_what_it_reported_and_leaves_others_alone(url: str) -> None:
    async with reporting_to_log(url) as (made, dispatcher, report):
        async with made.ctx.store.transaction() as tx:
            await processes.put_queues(tx, [processes.QueueStatus("another", "first", "paused", "", 1, 1)])
        dispatcher.provider_queues.of(parts.route_to(HOST, name="first")).adaptive_rate.slow_down(
            asyncio.get_running_loop().time(), 300
        )
        await report.publish()
        assert len(await reported(made)) == 2
        await report.close()
        assert [provider_queue.worker for provider_queue in await reported(made)] == ["another"]


async def test_a_store_that_is_away_is_reported_later(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery_provider_queue, "CHECK_SECONDS", 0.001)

    def away(_: store.Store) -> store.Transaction:
        raise errors.ServiceUnavailable("away", retry_after=1)

    async with reporting_to_log(url) as (made, dispatcher, report):
        dispatcher.provider_queues.of(parts.route_to(HOST)).adaptive_rate.slow_down(
            asyncio.get_running_loop().time(), 300
        )
        with monkeypatch.context() as patch:
            patch.setattr(type(made.ctx.store), "transaction", away)
            task = asyncio.create_task(report.run_forever())
            await parts.until(lambda: "provider_status_report_failed" in made.events())
            await report.close()

        async def is_reported() -> bool:
            return bool(await reported(made))

        await parts.until(is_reported)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
