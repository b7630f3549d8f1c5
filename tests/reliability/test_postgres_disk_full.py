"""A database server whose disk is full: both listeners refuse temporarily, and results wait for space.

First there is no room for data, and the server says so. Then there is none for its log, and it ends: somebody has to
start it again, and nobody has to start the service.
"""

import asyncio
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.reliability import service_process, sinks, small_disk_postgres, submission_service, whole_service

# Tables have some room in their last pages; a message takes a part of one.
MAX_THAT_FIT = 200
ENOUGH = 3


@pytest.fixture
def server() -> Iterator[small_disk_postgres.SmallDiskServer]:
    with small_disk_postgres.SmallDiskServer() as running:
        yield running


async def fills_up(whole: whole_service.WholeService) -> None:
    """Send over HTTP and SMTP until each has refused some; between these a smaller one may still fit."""
    refused = Counter[str]()
    for number in range(MAX_THAT_FIT):
        response = await whole.post(f"http {number}")
        if response.status_code != 202:
            service_process.check_refusal(response, 503, "service_unavailable")
            assert "the disk of the database is full; nothing was accepted" in response.text
            refused["http"] += 1
        reply = await whole.hand_in(f"smtp {number}")
        if reply[0] != submission_service.ACCEPTED:
            assert reply == whole_service.UNAVAILABLE
            refused["smtp"] += 1
        if min(refused["http"], refused["smtp"]) >= ENOUGH:
            return
    pytest.fail(f"there was always room: {refused}")


async def test_a_server_without_room_loses_nothing_and_goes_on_when_there_is_some(
    server: small_disk_postgres.SmallDiskServer, tmp_path: Path
) -> None:
    async with whole_service.running_service(tmp_path, server.create_database()) as whole:
        gate = await whole.under_way("in flight", "reported")
        await asyncio.to_thread(server.fill)
        await fills_up(whole)
        assert (await whole.client.get(f"{whole.service.base_url}/healthz")).status_code == 200
        assert server.is_alive

        await asyncio.to_thread(server.panic)
        await whole.refuse("third", "fourth", "third", "fourth")
        whole.sink.release(sinks.Point.CONTENT)
        gate.open()
        await whole.says("results_recording_deferred")
        await whole.says("webhook_result_recording_deferred")

        await asyncio.to_thread(server.make_room)
        await asyncio.to_thread(server.start)
        await whole.accept("third", "fourth")
        assert (await whole.client.get(f"{whole.service.base_url}/readyz")).status_code == 200
    await whole.prove()
