"""Scripted servers that end with their test, and both clients behind one function, without real pauses."""

import asyncio
import ssl
from collections.abc import Iterator
from typing import Any

import pytest

from clients.python.tests import scripted
from postroad_client import AsyncClient, Client


@pytest.fixture
def seen() -> scripted.Seen:
    """The requests that the servers of the test have read."""
    return []


@pytest.fixture
def serve(seen: scripted.Seen) -> Iterator[scripted.Serve]:
    """A function of the steps of a script, which starts a server and gives its base URL."""
    servers: list[scripted.Server] = []

    def start(*steps: scripted.Step, host: str = "127.0.0.1", context: ssl.SSLContext | None = None) -> str:
        servers.append(scripted.Server(list(steps), host=host, context=context, seen=seen))
        return servers[-1].url

    yield start
    for server in servers:
        server.close()


@pytest.fixture
def pauses() -> list[float]:
    """How long the client would have waited before each retry."""
    return []


@pytest.fixture(params=["sync", "async"])
def call(request: pytest.FixtureRequest, pauses: list[float]) -> scripted.Call:
    """A function of base URL, method, its argument and options, which makes a client and lets it do that."""

    def sync_call(
        base_url: str, method: str, argument: object, named: dict[str, Any], options: dict[str, Any]
    ) -> object:
        with Client(base_url, **options) as client:
            client._sleep = pauses.append
            return getattr(client, method)(argument, **named)

    async def async_pause(seconds: float) -> None:
        pauses.append(seconds)

    async def run(
        base_url: str,
        method: str,
        argument: object,
        *,
        key: str | None = None,
        wait_seconds: float | None = None,
        **options: object,
    ) -> object:
        named = {"idempotency_key": key, "timeout": wait_seconds}
        chosen = {name: value for name, value in named.items() if value is not None}
        given: dict[str, Any] = {"token": "pr_live_x", **options}
        if request.param == "sync":
            return await asyncio.to_thread(sync_call, base_url, method, argument, chosen, given)
        async with AsyncClient(base_url, **given) as client:
            client._sleep = async_pause
            return await getattr(client, method)(argument, **chosen)

    return run
