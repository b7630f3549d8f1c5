"""The addresses of mail hosts, cached as long as DNS allows: those published, and those to try.

Not tried are address families without a source address, and addresses that are not public hosts, unless
`delivery.allow_private` contains them: a recipient's domain that leads into our own networks is a mistake or an attack.
The hosts of MTA-STS policies are found here too.
"""

import ipaddress
from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from postroad import config
from postroad.concurrency import caches
from postroad.model.units import destinations
from postroad.network.dns import resolver

# Some 20 MB; 60 MB if all have the longest names and as many addresses as are kept.
MAX_HOSTS: Final = 50_000
# A record with TTL 0 is looked up once a second, not once a message; one that lives for weeks at least once an hour,
# since misrouted mail is worse than a query.
MIN_TTL_SECONDS: Final = 1.0
MAX_TTL_SECONDS: Final = 3600.0
# RFC 9520 section 3.2: a failure is cached for at least a second, to spare failing name servers.
FAILURE_SECONDS: Final = 5.0
# Those of both families that come first: more than a real host has, and a zone could fill the cache with hundreds. Our
# own address is found among them only, but no other one is tried either.
MAX_PUBLISHED: Final = 8
MAX_ADDRESSES: Final = 4


class Addresses(msgspec.Struct, frozen=True):
    """The addresses of a host. When there is none to try, `detail` says why."""

    published: tuple[str, ...]
    to_try: tuple[str, ...]
    valid_until: float
    detail: str = ""
    is_known: bool = True  # DNS answered, even if with no records
    is_authentic: bool = False
    is_blocked: bool = False  # there are addresses, and mail must be sent to none of them


class HostAddresses:
    """Finds and caches addresses."""

    def __init__(
        self,
        settings: config.Delivery,
        dns_resolver: resolver.Resolver,
        *,
        clock: Callable[[], float],
        sources: Iterable[config.Source] = (),
    ) -> None:
        self._resolver = dns_resolver
        self._clock = clock
        self._families = {ipaddress.ip_address(source.address).version for source in sources}
        self._allowed = tuple(map(ipaddress.ip_network, settings.allow_private))
        self._known: caches.TtlCache[Addresses] = caches.TtlCache(max_entries=MAX_HOSTS, clock=clock)

    async def find(self, host: str) -> Addresses:
        return await self._known.get_or_fetch(host, self._look_up)

    def of_literals(self, addresses: tuple[str, ...]) -> Addresses:
        """The same for a host that is given by its addresses."""
        return self._filter(addresses, valid_until=self.until(MAX_TTL_SECONDS))

    def why_blocked(self, address: str) -> str | None:
        """Why mail must not be sent to an address; None when it may be."""
        kind = destinations.why_blocked(address, allowed=self._allowed)
        return None if kind is None else f"{address} is {kind}"

    def until(self, ttl: float) -> float:
        """When an answer with this TTL expires."""
        return self._clock() + min(max(ttl, MIN_TTL_SECONDS), MAX_TTL_SECONDS)

    def after_failure(self) -> float:
        """When a failed lookup is repeated."""
        return self._clock() + FAILURE_SECONDS

    def as_trusted(self, found: Addresses) -> Addresses:
        """The same addresses for a host that the operator configured: none is blocked."""
        if not found.published:
            return found
        return self._filter(found.published, valid_until=found.valid_until, is_trusted=True)

    async def close(self) -> None:
        await self._known.close()

    async def _look_up(self, host: str) -> Addresses:
        answer = await self._resolver.addresses(host)
        if isinstance(answer, resolver.Failure):
            detail = f"DNS lookup failed for {host}: {answer.detail}"
            return Addresses((), (), self.after_failure(), detail=detail, is_known=False)
        valid_until = self.until(answer.ttl)
        if not answer.records:
            detail = f"{host} has no address" if answer.exists else f"the host {host} does not exist"
            return Addresses((), (), valid_until, detail=detail, is_authentic=answer.is_authentic)
        published = answer.records[:MAX_PUBLISHED]
        return self._filter(published, valid_until=valid_until, is_authentic=answer.is_authentic)

    def _filter(
        self, published: tuple[str, ...], *, valid_until: float, is_trusted: bool = False, is_authentic: bool = False
    ) -> Addresses:
        allowed, detail = published, ""
        if not is_trusted:
            allowed = tuple(address for address in published if self.why_blocked(address) is None)
            detail = "" if allowed else f"delivery to this address is not allowed: {self.why_blocked(published[0])}"
        to_try = tuple(self._of_our_families(allowed))[:MAX_ADDRESSES]
        if allowed and not to_try:
            detail = f"no source address can reach {allowed[0]}"
        return Addresses(
            published, to_try, valid_until, detail=detail, is_authentic=is_authentic, is_blocked=not allowed
        )

    def _of_our_families(self, addresses: Iterable[str]) -> Iterable[str]:
        if not self._families:
            return addresses
        return (address for address in addresses if ipaddress.ip_address(address).version in self._families)
