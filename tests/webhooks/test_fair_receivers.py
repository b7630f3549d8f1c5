"""Fairness: a receiver that hangs delays nobody else, however many of them there are."""

import asyncio

import pytest

from postroad.model import shares
from postroad.services import receivers
from postroad.webhooks import dispatching
from tests import webhook_receivers
from tests.webhooks import offices


class Hanging:
    """Answers when it is released, and not before."""

    def __init__(self) -> None:
        self.released = asyncio.Event()

    async def __call__(self, _: webhook_receivers.Received) -> bytes:
        await self.released.wait()
        return webhook_receivers.OK


async def test_nine_quick_receivers_are_told_everything_while_a_tenth_hangs(database_url: str) -> None:
    hanging = Hanging()
    async with (
        webhook_receivers.receiving(tls=False, answer=hanging) as slow,
        webhook_receivers.receiving(tls=False) as quick,
        offices.opened(database_url, connections=20) as office,
    ):
        blocked = await office.endpoint(slow.url)
        others = [await office.endpoint(quick.url) for _ in range(9)]
        for _ in range(30):
            await office.write(blocked)
        written = [(endpoint, await office.write(endpoint)) for _ in range(10) for endpoint in others]
        async with office.telling():
            await slow.received(1)
            await office.all_succeed(written)
            assert len(quick.requests) == 90
            hanging.released.set()
            await slow.received(30)


async def test_hanging_receivers_on_more_than_half_of_the_places_do_not_stop_a_proven_one(url: str) -> None:
    hanging = Hanging()
    async with (
        webhook_receivers.receiving(tls=False, answer=hanging) as slow,
        webhook_receivers.receiving(tls=False) as quick,
        offices.opened(url, connections=8) as office,
    ):
        proven = await office.endpoint(quick.url)
        async with office.telling():
            await office.settle(proven, await office.write(proven))
            for _ in range(12):
                blocked = await office.endpoint(slow.url)
                for _ in range(3):
                    await office.write(blocked)
            await slow.received(4)
            for _ in range(20):
                delivery_id = await office.write(proven)
                assert (await office.settle(proven, delivery_id)).standing == ("succeeded", 1)
            hanging.released.set()
            await slow.received(36)


async def test_a_new_receiver_is_told_while_all_others_hang_on_more_endpoints_than_a_step_looks_at(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatching, "ENDPOINTS", 3)
    monkeypatch.setattr(shares, "QUICK_SECONDS", 0.0)  # nobody is quick
    monkeypatch.setattr(receivers, "ATTEMPT_SECONDS", 10 * offices.PATIENCE_SECONDS)  # who hangs does not end
    hanging = Hanging()
    async with (
        webhook_receivers.receiving(tls=False) as slow,
        webhook_receivers.receiving(tls=False) as good,
        offices.opened(url, connections=8) as office,
    ):
        others = [await office.endpoint(slow.url) for _ in range(11)]
        async with office.telling():
            await office.all_succeed([(endpoint, await office.write(endpoint)) for endpoint in others])
            slow.answer = hanging
            written = [(endpoint, await office.write(endpoint)) for endpoint in others for _ in range(5)]
            await slow.received(13)
            office.pass_seconds(1)  # ids sort by time: it stands behind all the others
            new = await office.endpoint(good.url)
            assert (await office.settle(new, await office.write(new))).standing == ("succeeded", 1)
            assert len(slow.requests) == 13, "eleven that ended, and two on a quarter of the places"
            hanging.released.set()
            await office.all_succeed(written)


async def test_with_more_endpoints_than_places_everybodys_turn_comes(url: str) -> None:
    async with (
        webhook_receivers.receiving(tls=False) as receiver,
        offices.opened(url, connections=3, connections_per_account=2) as office,
    ):
        endpoints = [await office.endpoint(receiver.url) for _ in range(12)]
        written = [(endpoint, await office.write(endpoint)) for endpoint in endpoints for _ in range(4)]
        async with office.telling():
            await office.all_succeed(written)
        assert len(receiver.requests) == 48
