"""A database server whose disk is full: both doors refuse for now, results wait, and all goes on when there is room.

First there is no room for data, and the server says so. Then there is none for its log, and it ends: somebody has to
start it again, and nobody has to start the service.
"""

import asyncio
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.reliability import cramped, houses, serving, sinks, submitting

# Tables have some room in their last pages; a message takes a part of one.
MOST_THAT_FIT = 200
ENOUGH = 3


@pytest.fixture
def server() -> Iterator[cramped.CrampedServer]:
    with cramped.CrampedServer() as running:
        yield running


async def fills_up(house: houses.House) -> None:
    """Send by both doors until each has refused some; between these a smaller one may still fit."""
    refused = Counter[str]()
    for number in range(MOST_THAT_FIT):
        response = await house.post(f"http {number}")
        if response.status_code != 202:
            serving.check_refusal(response, 503, "service_unavailable")
            assert "the disk of the store is full; nothing was accepted" in response.text
            refused["http"] += 1
        reply = await house.hand_in(f"smtp {number}")
        if reply[0] != submitting.TAKEN:
            assert reply == houses.UNAVAILABLE
            refused["smtp"] += 1
        if min(refused["http"], refused["smtp"]) >= ENOUGH:
            return
    pytest.fail(f"there was always room: {refused}")


async def test_a_server_without_room_loses_nothing_and_goes_on_when_there_is_some(
    server: cramped.CrampedServer, tmp_path: Path
) -> None:
    async with houses.open_house(tmp_path, server.create_database()) as house:
        gate = await house.under_way("in flight", "told")
        await asyncio.to_thread(server.fill)
        await fills_up(house)
        assert (await house.client.get(f"{house.door.base_url}/healthz")).status_code == 200
        assert server.is_alive

        await asyncio.to_thread(server.panic)
        await house.refuse("third", "fourth", "third", "fourth")
        house.sink.release(sinks.Point.CONTENT)
        gate.open()
        await house.says("results_not_recorded_yet")
        await house.says("webhook_result_not_recorded_yet")

        await asyncio.to_thread(server.make_room)
        await asyncio.to_thread(server.start)
        await house.accept("third", "fourth")
        assert (await house.client.get(f"{house.door.base_url}/readyz")).status_code == 200
    await house.prove()
