"""The whole service around one scene: the API, the engine, a name server, an endpoint outside and a listener inside.

The mail cases use a whole service instead: both listeners, the delivery engine, and a host that accepts everything.
"""

import contextlib
import socket
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio
import trustme

from postroad import config, context
from tests import contexts, dns_server, webhook_server
from tests.api.management import AccountClients, mine, served, switch, theirs
from tests.contexts import clock, ctx
from tests.security import webhook_scenario, whole_service
from tests.webhooks import webhook_harness

__all__ = ["clock", "ctx", "mine", "served", "switch", "theirs"]


@pytest.fixture
def database_url(request: pytest.FixtureRequest) -> str:
    """SQLite, unless a test asks for more by an indirect parameter: the guard knows no store."""
    return str(request.getfixturevalue(f"clean_{getattr(request, 'param', 'sqlite')}_url"))


@pytest.fixture
def authority() -> trustme.CA:
    """Whom the service trusts."""
    return trustme.CA()


@pytest.fixture
def ca_file(authority: trustme.CA) -> Iterator[str]:
    with webhook_server.authority_file(authority) as path:
        yield path


@pytest_asyncio.fixture
async def dns() -> AsyncIterator[dns_server.DnsServer]:
    """Answers without a lifetime: what it says counts at once."""
    async with dns_server.running({webhook_server.NAME: {"A": [webhook_scenario.PUBLIC]}}, ttl=0) as running:
        yield running


@pytest_asyncio.fixture
async def twins(
    authority: trustme.CA,
) -> AsyncIterator[tuple[webhook_server.WebhookServer, webhook_server.WebhookServer]]:
    """Endpoints on one port, outside and inside, and both could prove who they are."""
    for _ in range(webhook_scenario.PORT_TRIES):
        async with contextlib.AsyncExitStack() as stack:
            receiving = webhook_server.running
            public = await stack.enter_async_context(receiving(host=webhook_scenario.PUBLIC, authority=authority))
            try:
                inside = await stack.enter_async_context(
                    receiving(host=webhook_scenario.INSIDE, authority=authority, port=public.port)
                )
            except OSError:
                continue
            yield public, inside
            return
    raise RuntimeError("no port is free on both addresses")


@pytest.fixture
def settings(database_url: str, dns: dns_server.DnsServer, ca_file: str) -> config.Settings:
    return config.load(
        environment={},
        overrides={
            "database": {"url": database_url},
            "security": {"installation_key": contexts.SECRET_KEY},
            "http": {"base_url": f"https://{webhook_scenario.OWN_NAME}"},
            "delivery": {"resolvers": [dns.address], "hostname": webhook_scenario.OWN_HOST},
            "webhooks": {"allow_private": webhook_scenario.CALLED_PUBLIC, "ca_file": ca_file},
        },
    )


@pytest.fixture
def dialled(monkeypatch: pytest.MonkeyPatch, dns: dns_server.DnsServer) -> list[str]:
    """The addresses to which this process opens TCP connections, or tries to; but for long answers of DNS."""
    found: list[str] = []
    connect = socket.socket.connect

    def note(sock: socket.socket, address: tuple[str, int]) -> None:
        is_tcp = sock.type == socket.SOCK_STREAM and sock.family in {socket.AF_INET, socket.AF_INET6}
        if is_tcp and address[:2] != (dns_server.LOOPBACK, dns.port):
            found.append(address[0])
        connect(sock, address)

    monkeypatch.setattr(socket.socket, "connect", note)
    return found


@pytest.fixture
def scenario(
    ctx: context.Context,
    clock: contexts.Clock,
    dns: dns_server.DnsServer,
    twins: tuple[webhook_server.WebhookServer, webhook_server.WebhookServer],
    mine: AccountClients,
    dialled: list[str],
) -> webhook_scenario.WebhookScenario:
    public, inside = twins
    return webhook_scenario.WebhookScenario(
        webhook_harness.WebhookHarness(ctx, clock), dns, public, inside, mine, dialled
    )


@pytest_asyncio.fixture
async def service(
    request: pytest.FixtureRequest, tmp_path: Path, database_url: str, authority: trustme.CA
) -> AsyncIterator[whole_service.WholeService]:
    """Both listeners and the delivery engine; an indirect parameter holds settings of submission."""
    submission = getattr(request, "param", {})
    async with whole_service.standing(database_url, folder=tmp_path, authority=authority, **submission) as standing:
        yield standing
