"""Fairness: an endpoint that hangs delays no other account, however many of them there are."""

import asyncio

import pytest

from postroad.model.events import webhook_schedule
from postroad.network.http import guarded_client as webhook_client
from postroad.webhooks import engine
from tests import webhook_endpoints, webhook_server
from tests.webhooks import webhook_harness

NOWHERE = "http://127.0.0.2:1/"


class Hanging:
    """Answers when it is released, and not before."""

    def __init__(self) -> None:
        self.released = asyncio.Event()

    async def __call__(self, _: webhook_server.ReceivedRequest) -> bytes:
        await self.released.wait()
        return webhook_server.OK


async def test_nine_quick_endpoints_get_everything_while_a_tenth_hangs(database_url: str) -> None:
    hanging = Hanging()
    async with (
        webhook_server.running(tls=False, answer=hanging) as slow,
        webhook_server.running(tls=False) as quick,
        webhook_harness.opened(database_url, connections=20) as harness,
    ):
        blocked = await harness.endpoint(slow.url)
        others = [await harness.endpoint(quick.url) for _ in range(9)]
        for _ in range(30):
            await harness.write(blocked)
        written = [(endpoint, await harness.write(endpoint)) for _ in range(10) for endpoint in others]
        async with harness.delivering():
            await slow.received(1)
            await harness.all_succeed(written)
            assert len(quick.requests) == 90
            hanging.released.set()
            await slow.received(30)


async def test_hanging_endpoints_on_more_than_half_of_the_places_do_not_stop_a_proven_one(url: str) -> None:
    hanging = Hanging()
    async with (
        webhook_server.running(tls=False, answer=hanging) as slow,
        webhook_server.running(tls=False) as quick,
        webhook_harness.opened(url, connections=8) as harness,
    ):
        proven = await harness.endpoint(quick.url)
        async with harness.delivering():
            await harness.settle(proven, await harness.write(proven))
            for _ in range(12):
                blocked = await harness.endpoint(slow.url)
                for _ in range(3):
                    await harness.write(blocked)
            await slow.received(4)
            for _ in range(20):
                delivery_id = await harness.write(proven)
                assert (await harness.settle(proven, delivery_id)).standing == ("succeeded", 1)
            hanging.released.set()
            await slow.received(36)


async def test_a_new_endpoint_is_served_while_all_others_hang_on_more_endpoints_than_a_step_looks_at(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "MAX_ENDPOINTS_PER_STEP", 3)
    monkeypatch.setattr(webhook_schedule, "RESPONSIVE_SECONDS", 0.0)  # nobody is quick
    monkeypatch.setattr(
        webhook_client, "ATTEMPT_SECONDS", 10 * webhook_harness.TIMEOUT_SECONDS
    )  # who hangs does not end
    hanging = Hanging()
    async with (
        webhook_server.running(tls=False) as slow,
        webhook_server.running(tls=False) as good,
        webhook_harness.opened(url, connections=8) as harness,
    ):
        others = [await harness.endpoint(slow.url) for _ in range(11)]
        async with harness.delivering():
            await harness.all_succeed([(endpoint, await harness.write(endpoint)) for endpoint in others])
            slow.answer = hanging
            written = [(endpoint, await harness.write(endpoint)) for endpoint in others for _ in range(5)]
            await slow.received(13)
            harness.pass_seconds(1)  # ids sort by time: it stands behind all the others
            new = await harness.endpoint(good.url)
            assert (await harness.settle(new, await harness.write(new))).standing == ("succeeded", 1)
            assert len(slow.requests) == 13, "eleven that ended, and two on a quarter of the places"
            hanging.released.set()
            await harness.all_succeed(written)


async def test_ten_endpoints_of_an_account_share_the_slots_of_one(url: str) -> None:
    async with webhook_harness.opened(url) as harness:
        first = await harness.endpoint(NOWHERE)
        others = [await webhook_endpoints.subscribe_another(harness.ctx, first.account_id) for _ in range(9)]
        alone = await harness.endpoint(NOWHERE)
        enabled = {one.id: one for one in (first, *others, alone)}
        parts, served = harness.parts(), set[str]()
        for _ in range(5):
            plan = parts.dispatching._plan(enabled)
            assert [len(plan.get(one.id, ())) for one in (first, *others)].count(1) == 2
            assert len(plan[alone.id]) == 2
            served |= plan.keys()
            for slots in plan.values():
                parts.shares.release(slots)
        assert served == enabled.keys()
        await parts.finish()
