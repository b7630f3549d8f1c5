"""Several hosts send webhooks from one store: each event once without faults, and none is lost when a host dies."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from postroad.webhooks import engine
from tests import webhook_server
from tests.reliability import service_process, webhook_processes
from tests.webhook_server import WebhookServer

HOSTS = ("one", "two", "three")
COUNT = 400
LONG_TIMEOUTS = webhook_processes.sections(lease_seconds=600)

pytestmark = pytest.mark.parametrize("url", ["postgres"], indirect=True)


@contextlib.asynccontextmanager
async def hosts(
    folder: Path, url: str, tables: dict[str, dict[str, object]]
) -> AsyncIterator[tuple[WebhookServer, webhook_processes.EndpointHarness, Sequence[service_process.Service]]]:
    """Processes on one store, all at work."""
    async with contextlib.AsyncExitStack() as stack:
        receiver = await stack.enter_async_context(webhook_server.running(tls=False))
        desk = await stack.enter_async_context(webhook_processes.open_harness(url, tables, receiver.url))
        services = [
            await stack.enter_async_context(webhook_processes.process(folder / name, url, tables)) for name in HOSTS
        ]
        await asyncio.gather(*(service.start() for service in services))
        yield receiver, desk, services


async def held_by(desk: webhook_processes.EndpointHarness, service: service_process.Service) -> set[str]:
    """What a process holds."""
    name = f":{service.process.pid}:"
    return {one.id for one in await desk.deliveries() if webhook_processes.is_held(one) and name in str(one.worker)}


async def all_hold_some(desk: webhook_processes.EndpointHarness, services: Sequence[service_process.Service]) -> None:
    async def is_so() -> bool:
        return all([await held_by(desk, service) for service in services])

    await service_process.until(is_so)


async def test_three_processes_send_each_event_once(url: str, tmp_path: Path) -> None:
    async with hosts(tmp_path, url, LONG_TIMEOUTS) as (receiver, desk, services):
        receiver.answer = gate = webhook_processes.Gate()
        written = await desk.write(COUNT)
        await all_hold_some(desk, services)
        gate.open()
        await desk.finished()
        assert [await service.stop() for service in services] == [0, 0, 0]
        assert [service.errors() for service in services] == [[], [], []]
        await desk.prove(written, receiver)
        delivered = [len(webhook_processes.logged_events(service, "webhook_delivered")) for service in services]
        assert sum(delivered) == COUNT
        assert all(delivered)


async def test_what_a_killed_process_held_is_sent_by_the_others_when_its_leases_end(url: str, tmp_path: Path) -> None:
    async with hosts(tmp_path, url, webhook_processes.sections()) as (receiver, desk, services):
        killed, *others = services
        receiver.answer = gate = webhook_processes.Gate()
        written = await desk.write(COUNT)
        await all_hold_some(desk, services)
        await killed.kill()
        lost = await held_by(desk, killed)
        assert lost
        gate.open()
        await desk.finished()
        assert [await service.stop() for service in others] == [0, 0]
        assert [service.errors() for service in services] == [[], [], []]
        await desk.prove(written, receiver)
        logs = await desk.attempts()
        assert {log[0].delivery_id for log in logs if engine.WORKER_LOST in {attempt.error for attempt in log}} == lost
