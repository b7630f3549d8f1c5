"""Hosts wake each other up: with polls an hour apart, what one accepts another delivers, and a third reports."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from tests import webhook_server
from tests.postgres_server import PostgresServer
from tests.reliability import (
    delivery_harness,
    service_process,
    sinks,
    submission_service,
    webhook_processes,
)
from tests.webhook_server import WebhookServer

HOUR_MILLISECONDS = 3_600_000
MESSAGES = 3
# For engines to come to rest: without a wake-up they would then wait for their next poll.
REST_SECONDS = 0.3
LISTENERS = "SELECT COUNT(*) FROM pg_stat_activity WHERE application_name = 'postroad_wakeups' AND datname = '{name}'"
CUT = (
    "SELECT COUNT(pg_terminate_backend(pid)) FROM pg_stat_activity "
    "WHERE application_name = 'postroad_wakeups' AND datname = '{name}'"
)


@dataclass(slots=True)
class ThreeHosts:
    """One that accepts, one that delivers and one that sends webhooks."""

    services: list[service_process.Service]
    sink: sinks.Sink
    receiver: WebhookServer
    login: tuple[str, str]
    client: httpx.AsyncClient
    keys: list[str] = field(default_factory=list)

    async def send_one_by_one(self) -> None:
        """Messages, each sent when all that came before is delivered and reported, and everybody sleeps."""
        for _ in range(MESSAGES):
            await asyncio.sleep(REST_SECONDS)
            key = f"key-{len(self.keys)}"
            response = await self.client.post(
                f"{self.services[0].base_url}/emails",
                json={"from": submission_service.SENDER, "to": [f"{key}@example.net"], "subject": key, "text": "Hello"},
                auth=self.login,
                headers={"Idempotency-Key": key},
            )
            assert response.status_code == 202, response.text
            self.keys.append(key)
            await self.sink.got(len(self.keys))
            await webhook_processes.got(self.receiver, len(self.keys))

    async def stop(self) -> None:
        """Everything was delivered, and nobody had a fault."""
        assert self.sink.recipients == [f"{key}@example.net" for key in self.keys]
        assert [await service.stop() for service in self.services] == [0, 0, 0]
        assert [service.errors() for service in self.services] == [[], [], []]


@contextlib.asynccontextmanager
async def three_hosts(folder: Path, url: str) -> AsyncIterator[ThreeHosts]:
    async with contextlib.AsyncExitStack() as stack:
        sink = await stack.enter_async_context(sinks.running())
        receiver = await stack.enter_async_context(webhook_server.running(tls=False))
        tables = {
            **delivery_harness.sections(sink, poll_milliseconds=HOUR_MILLISECONDS),
            "webhooks": webhook_processes.sections()["webhooks"],
        }
        async with delivery_harness.open_context(url, tables) as ctx:
            account_id, login = await submission_service.open_account(ctx)
            await webhook_processes.subscribe(ctx, account_id, receiver.url)
        services = [
            await stack.enter_async_context(webhook_processes.process(folder / role, url, tables, roles=(role,)))
            for role in ("api", "delivery", "webhooks")
        ]
        client = await stack.enter_async_context(
            httpx.AsyncClient(timeout=service_process.TIMEOUT_SECONDS, trust_env=False)
        )
        await asyncio.gather(*(service.start() for service in services))
        yield ThreeHosts(services, sink, receiver, login, client)


async def test_mail_and_events_of_other_hosts_are_found_without_a_poll(clean_postgres_url: str, tmp_path: Path) -> None:
    async with three_hosts(tmp_path, clean_postgres_url) as hosts:
        await hosts.send_one_by_one()
        await hosts.stop()


async def test_wakeups_return_after_their_connections_were_cut(
    postgres_server: PostgresServer, clean_postgres_url: str, tmp_path: Path
) -> None:
    name = clean_postgres_url.partition("?")[0].rpartition("/")[2]

    async def all_listen() -> bool:
        return await asyncio.to_thread(postgres_server.execute, LISTENERS.format(name=name)) == "3"

    async with three_hosts(tmp_path, clean_postgres_url) as hosts:
        await service_process.until(all_listen)
        assert await asyncio.to_thread(postgres_server.execute, CUT.format(name=name)) == "3"
        for service in hosts.services:
            await webhook_processes.logged(service, "wakeups_unavailable")
        await service_process.until(all_listen)
        await hosts.send_one_by_one()
        await hosts.stop()
