"""The addresses of mail hosts, remembered as long as DNS allows: those published, and of these the ones to try.

Not to try: families that none of our source addresses has, and, as long as mail goes to its usual port, loopback and
its like: a public name that leads into this host is a mistake or a trick.
"""

import ipaddress
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from postroad import config
from postroad.concurrency import ttl_cache
from postroad.model import destinations
from postroad.network import resolver

# Some 20 MB.
MAX_HOSTS: Final = 50_000
# A record without a lifetime is asked for once a second, not once a message; one that lives for weeks is still asked
# for once an hour, since mail that goes to the wrong place is worse than a question.
MIN_TTL_SECONDS: Final = 1.0
MAX_TTL_SECONDS: Final = 3600.0
# RFC 9520 section 3.2: a failure is remembered for at least a second, so that name servers in trouble get no storm.
FAILURE_SECONDS: Final = 5.0
MAX_ADDRESSES: Final = 4

SMTP_PORT: Final = 25


@dataclass(frozen=True, slots=True)
class Addresses:
    """What DNS says about a host. When there is nothing to try, `trouble` says why."""

    published: tuple[str, ...]
    to_try: tuple[str, ...]
    valid_until: float
    detail: str = ""
    is_known: bool = True  # DNS answered, be it that there is nothing
    is_authentic: bool = False


class HostAddresses:
    """Finds and remembers addresses."""

    def __init__(
        self, settings: config.Delivery, dns_resolver: resolver.Resolver, *, clock: Callable[[], float]
    ) -> None:
        self._resolver = dns_resolver
        self._clock = clock
        self._families = {_version(address) for address in settings.source_addresses}
        # Destinations on another port are those of tests, and those are on loopback.
        self._allows_any = settings.mx_port != SMTP_PORT
        self._known: ttl_cache.TtlCache[Addresses] = ttl_cache.TtlCache(max_entries=MAX_HOSTS, clock=clock)

    async def find(self, host: str) -> Addresses:
        """The addresses of a host."""
        return await self._known.get_or_fetch(host, self._look_up)

    def of_literals(self, addresses: tuple[str, ...]) -> Addresses:
        """The same for a host that is given by its addresses."""
        return self._filter(addresses, valid_until=self.until(MAX_TTL_SECONDS))

    def until(self, ttl: float) -> float:
        """When something is to be asked again that DNS lends for this many seconds."""
        return self._clock() + min(max(ttl, MIN_TTL_SECONDS), MAX_TTL_SECONDS)

    def after_failure(self) -> float:
        """When something is to be asked again that failed."""
        return self._clock() + FAILURE_SECONDS

    def as_trusted(self, found: Addresses) -> Addresses:
        """The same addresses for a host that the operator has named: none of them is forbidden."""
        if not found.published:
            return found
        return self._filter(found.published, valid_until=found.valid_until, is_trusted=True)

    async def close(self) -> None:
        """End the look-ups under way."""
        await self._known.close()

    async def _look_up(self, host: str) -> Addresses:
        answer = await self._resolver.addresses(host)
        if isinstance(answer, resolver.Failure):
            detail = f"DNS does not answer for {host}: {answer.detail}"
            return Addresses((), (), self.after_failure(), detail=detail, is_known=False)
        valid_until = self.until(answer.ttl)
        if not answer.records:
            detail = f"{host} has no address" if answer.exists else f"the host {host} does not exist"
            return Addresses((), (), valid_until, detail=detail, is_authentic=answer.is_authentic)
        return self._filter(answer.records, valid_until=valid_until, is_authentic=answer.is_authentic)

    def _filter(
        self, published: tuple[str, ...], *, valid_until: float, is_trusted: bool = False, is_authentic: bool = False
    ) -> Addresses:
        allowed, detail = published, ""
        if not (is_trusted or self._allows_any):
            allowed = tuple(address for address in published if destinations.why_forbidden(address) is None)
            detail = "" if allowed else f"no mail may go there: {destinations.why_forbidden(published[0])}"
        to_try = tuple(self._of_our_families(allowed))[:MAX_ADDRESSES]
        if allowed and not to_try:
            detail = f"none of delivery.source_addresses can reach {allowed[0]}"
        return Addresses(published, to_try, valid_until, detail=detail, is_authentic=is_authentic)

    def _of_our_families(self, addresses: Iterable[str]) -> Iterable[str]:
        if not self._families:
            return addresses
        return (address for address in addresses if ipaddress.ip_address(address).version in self._families)


def _version(source_address: str) -> int:
    try:
        return ipaddress.ip_address(source_address).version
    except ValueError:
        msg = f"delivery.source_addresses: {source_address!r} is not an address of IPv4 or IPv6"
        raise config.ConfigError(msg) from None
