"""The guard of webhooks for tests: a real one, with a name server and endpoints on loopback.

127.0.0.2 and 127.0.0.3 count as public, because the operator allows their network; 127.0.0.1 stays private.
"""

import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

from postroad import config
from postroad.network.http import guarded_client as webhook_client
from tests import dns_server, webhook_server

PUBLIC: Final = webhook_server.PUBLIC
NEIGHBOUR: Final = "127.0.0.3"
PRIVATE: Final = "127.0.0.1"
NAME: Final = webhook_server.NAME
# A port that is free on one address is nearly always free on another.
PORT_TRIES: Final = 20


@contextlib.asynccontextmanager
async def running_client(
    dns: dns_server.DnsServer | None = None,
    endpoint: webhook_server.WebhookServer | None = None,
    *,
    allow_private: Sequence[str] = ("127.0.0.2/31",),
    others: dict[str, dict[str, Any]] | None = None,
    **webhooks: Any,
) -> AsyncIterator[webhook_client.WebhookClient]:
    """A guard that trusts this endpoint's authority and asks this name server."""
    ca_file = endpoint.ca_file if endpoint else ""
    overrides: dict[str, dict[str, Any]] = {
        "webhooks": {"allow_private": list(allow_private), "ca_file": ca_file, **webhooks},
        "delivery": {"resolvers": [dns.address] if dns else []},
    }
    for section, values in (others or {}).items():
        overrides[section] = {**overrides.get(section, {}), **values}
    guard = webhook_client.WebhookClient(config.load(environment={}, overrides=overrides))
    try:
        yield guard
    finally:
        await guard.close()


@contextlib.asynccontextmanager
async def twins(
    one: str = PUBLIC, other: str = PRIVATE, *, other_tls: bool = True
) -> AsyncIterator[tuple[webhook_server.WebhookServer, webhook_server.WebhookServer]]:
    """Endpoints at two addresses on one port, with certificates of their own for one name."""
    for _ in range(PORT_TRIES):
        async with contextlib.AsyncExitStack() as stack:
            first = await stack.enter_async_context(webhook_server.running(host=one))
            try:
                second = await stack.enter_async_context(
                    webhook_server.running(host=other, port=first.port, tls=other_tls)
                )
            except OSError:
                continue
            yield first, second
            return
    raise RuntimeError("no port is free on both addresses")
