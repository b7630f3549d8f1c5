"""A router on a real name server, with a clock that stands still and no chance."""

import contextlib
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from postroad import config
from postroad.delivery import routing, tls_choice
from postroad.network.dns import resolver
from postroad.network.http import https_get
from postroad.telemetry import logs
from tests import dns_server

# An address for tests (RFC 5737): nothing is sent there.
ADDRESS = "192.0.2.1"
# Tests call the addresses of documentation public (RFC 5737, RFC 3849).
PUBLIC = ["192.0.2.0/24", "198.51.100.0/24", "2001:db8::/32"]


# A domain with two mail hosts, of which its MTA-STS policy may name one.
TWO_HOSTS: dns_server.Zones = {
    "example.org": {"MX": ["10 mx1.example.org.", "20 mx2.example.net."]},
    "mx1.example.org": {"A": ["192.0.2.1"]},
    "mx2.example.net": {"A": ["192.0.2.2"]},
    "mta-sts.example.org": {"A": ["127.0.0.1"]},
}


@dataclass(slots=True)
class RouterHarness:
    """What a test looks at and moves."""

    router: routing.Router
    dns: dns_server.DnsServer
    now: list[float]

    async def route(self, domain: str) -> routing.Route:
        """The route, which has to be one."""
        found = await self.router.route(domain)
        assert isinstance(found, routing.Route), found
        return found

    async def no_route(self, domain: str) -> routing.NoRoute:
        """The reason why there is none."""
        found = await self.router.route(domain)
        assert isinstance(found, routing.NoRoute), found
        return found

    async def names(self, domain: str) -> list[str]:
        """The hosts in the order to try."""
        return [host.name for host in (await self.route(domain)).hosts]


@contextlib.asynccontextmanager
async def running(
    zones: dns_server.Zones,
    *,
    secure: Collection[str] = (),
    own_names: Iterable[str] = (),
    https: https_get.Client | None = None,
    shuffle: Callable[[list[resolver.Mx]], None] | None = None,
    stored_policies: tls_choice.StoredPolicies | None = None,
    report: tls_choice.Report | None = None,
    log: logs.Logger | None = None,
    timeout_seconds: float = 30,
    upstreams: Sequence[Mapping[str, object]] = (),
    sources: Sequence[str] = (),
    **settings: Any,
) -> AsyncIterator[RouterHarness]:
    """A router for the time of the block.

    It waits long for DNS, which may be slow on a busy machine; a test whose DNS is silent says for how long.
    """
    async with dns_server.running(zones, secure=secure) as server:
        delivery = {"mta_sts": False, "allow_private": PUBLIC, **settings}
        now = [1000.0]
        named = [{"name": f"out{number}", "address": address} for number, address in enumerate(sources)]
        overrides = {"delivery": delivery, "upstreams": upstreams, "sources": named}
        loaded = config.load(environment={}, overrides=overrides)
        router = routing.Router(
            loaded.delivery,
            resolver.Resolver([server.address], try_seconds=timeout_seconds / 3, query_seconds=timeout_seconds),
            clock=lambda: now[0],
            shuffle=shuffle or (lambda _hosts: None),
            own_names=own_names,
            upstreams=loaded.upstreams,
            sources=loaded.sources,
            https=https,
            stored_policies=stored_policies,
            report=report,
            log=log,
        )
        try:
            yield RouterHarness(router, server, now)
        finally:
            await router.close()
