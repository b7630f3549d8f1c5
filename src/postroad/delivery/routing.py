"""Where the mail of a domain goes: its mail hosts in the order to try, with addresses, TLS policies and a pool.

RFC 5321 section 5.1 and RFC 7505: mail hosts by preference, equal ones shuffled; without MX records the domain itself;
a null MX takes no mail. When we are one of the hosts ourselves, only those before us are left. What DNS does is a
value: a route, or the reason why there is none, and whether trying again could help. Mail hosts that cannot be found
are worth trying again, and so is every failure of DNS. MX records that name an address, or no host, are ignored.
"""

import asyncio
import ipaddress
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from postroad import config
from postroad.concurrency import ttl_cache
from postroad.delivery import host_addresses, mta_sts_policies, tls_choice
from postroad.model import destinations, providers, tls_policy
from postroad.network import https_get, resolver
from postroad.protocol.dns import mta_sts
from postroad.telemetry import logs

# Some 50 MB.
MAX_DOMAINS: Final = 50_000
# Whoever is not reached by ten hosts is not reached today.
MAX_HOSTS: Final = 10
# A reason is read by people: a few hosts show what is wrong.
SHOWN_ERRORS: Final = 3

LOCALHOST: Final = ("127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class Host:
    """One address to try."""

    name: str
    address: str
    port: int
    tls: tls_policy.TlsPolicy


@dataclass(frozen=True, slots=True)
class Route:
    """Where to go, in the order to try. `provider` is a field of `config.Pools`; `pool` says who shares its limits."""

    pool: str
    provider: str
    hosts: tuple[Host, ...]
    valid_until: float


@dataclass(frozen=True, slots=True)
class NoRoute:
    """Why there is nowhere to go; `permanent` when trying again would not help."""

    permanent: bool
    detail: str
    valid_until: float


@dataclass(frozen=True, slots=True)
class _MxHost:
    """A mail host and what DNS says about it."""

    mx: resolver.Mx
    found: host_addresses.Addresses


class Router:
    """Finds routes and remembers them as long as DNS allows. `own_names` are names and addresses of this host.

    Domains are in lower case and A-labels, as `protocol.address` gives them, or address literals.
    """

    def __init__(
        self,
        settings: config.Delivery,
        dns_resolver: resolver.Resolver,
        *,
        clock: Callable[[], float],
        shuffle: Callable[[list[resolver.Mx]], None],
        own_names: Iterable[str] = (),
        https: https_get.Client | None = None,
        log: logs.Logger | None = None,
    ) -> None:
        self._port = settings.mx_port
        self._resolver = dns_resolver
        self._shuffle = shuffle
        self._own_names = _own_names(own_names, settings)
        self._smarthost = config.endpoint(settings.smarthost, name="delivery.smarthost") if settings.smarthost else None
        self._tls = tls_choice.TlsChoice(settings, dns_resolver)
        self._addresses = host_addresses.HostAddresses(settings, dns_resolver, clock=clock)
        self._policies = (
            mta_sts_policies.PolicyCache(
                dns_resolver, self._addresses, https=https or https_get.Client(), clock=clock, log=log
            )
            if settings.mta_sts and settings.tls != "off"
            else None
        )
        self._routes: ttl_cache.TtlCache[Route | NoRoute] = ttl_cache.TtlCache(max_entries=MAX_DOMAINS, clock=clock)

    def cached(self, domain: str) -> Route | NoRoute | None:
        """What is known and valid, without asking anybody."""
        return self._routes.get(domain if self._smarthost is None else providers.SMARTHOST)

    async def route(self, domain: str) -> Route | NoRoute:
        """The way to a domain."""
        smarthost = self._smarthost
        if smarthost is not None:
            return await self._routes.get_or_fetch(providers.SMARTHOST, lambda _: self._to_smarthost(smarthost))
        find = self._to_literal if domain.startswith("[") else self._to_domain
        return await self._routes.get_or_fetch(domain, find)

    async def close(self) -> None:
        """End the look-ups under way."""
        await self._routes.close()
        await self._addresses.close()

    # Fixed destinations.

    async def _to_smarthost(self, smarthost: config.Endpoint) -> Route | NoRoute:
        """The operator has named the host: its addresses are not judged, and a fault of it costs no mail."""
        host, port = smarthost
        found = await self._operator_addresses(host)
        if not found.to_try:
            return NoRoute(permanent=False, detail=f"delivery.smarthost: {found.detail}", valid_until=found.valid_until)
        hosts = tuple(Host(host, address, port, self._tls.setting) for address in found.to_try)
        return Route(providers.SMARTHOST, providers.SMARTHOST, hosts, found.valid_until)

    async def _operator_addresses(self, host: str) -> host_addresses.Addresses:
        if host == "localhost":  # RFC 6761 section 6.3: name servers need not know it
            found = self._addresses.of_literals(LOCALHOST)
        elif _is_address(host):
            found = self._addresses.of_literals((host,))
        else:
            found = await self._addresses.find(host.lower())
        return self._addresses.as_trusted(found)

    async def _to_literal(self, domain: str) -> Route | NoRoute:
        address = destinations.literal(domain)
        if address is None:
            return self._permanent(f"{domain} is not an address")
        found = self._addresses.of_literals((str(address),))
        if str(address) in self._own_names:
            return self._permanent(f"mail for {domain} loops back to this host")
        if not found.to_try:
            # A forbidden address stays one; our own source addresses may change.
            is_forbidden = destinations.why_forbidden(str(address)) is not None
            return (self._permanent if is_forbidden else self._temporary)(f"{domain}: {found.detail}")
        hosts = tuple(Host(domain, text, self._port, self._tls.setting) for text in found.to_try)
        return Route(destinations.provider_queue_name(found.to_try), providers.OTHERS, hosts, found.valid_until)

    # Domains.

    async def _to_domain(self, name: str) -> Route | NoRoute:
        domain = name.lower().removesuffix(".")
        if not destinations.is_host_name(domain):
            return self._permanent(f"{domain} is not the name of a domain")
        answer, policy_id = await asyncio.gather(self._resolver.mx(domain), self._announced(domain))
        if isinstance(answer, resolver.Failure):
            return self._temporary(f"DNS does not answer for {domain}: {answer.detail}")
        published = self._published(domain, answer)
        if isinstance(published, NoRoute):
            return published
        sites = await self._look_up(self._before_our_name(published)[:MAX_HOSTS])
        sites = self._before_our_address(sites)
        dead_end = self._no_route(domain, answer, sites)
        if dead_end is not None:
            return dead_end
        policy = await self._policies.policy(domain, policy_id) if self._policies is not None else None
        hosts, details = await self._secure(sites, domain=domain, policy=policy, is_authentic=answer.is_authentic)
        if not hosts:
            return self._temporary(f"no mail host of {domain} can be used now: {'; '.join(details[:SHOWN_ERRORS])}")
        pool, provider = _provider_queue(published)
        # A host that DNS does not know at the moment is asked for again soon.
        valid_until = min(self._addresses.until(answer.ttl), *(site.found.valid_until for site in sites))
        return Route(pool, provider, hosts, valid_until)

    async def _announced(self, domain: str) -> str | None:
        return await self._policies.announced(domain) if self._policies is not None else None

    def _published(self, domain: str, answer: resolver.Answer[resolver.Mx]) -> list[resolver.Mx] | NoRoute:
        """The mail hosts in the order to try."""
        if not answer.exists:
            return self._permanent(f"the domain {domain} does not exist", ttl=answer.ttl)
        if not answer.records:
            return [resolver.Mx(0, domain)]
        if [mx.host for mx in answer.records] == [""]:
            return self._permanent(f"{domain} does not accept mail (null MX)", ttl=answer.ttl)
        hosts = [mx for mx in answer.records if destinations.is_host_name(mx.host)]
        self._shuffle(hosts)
        hosts.sort(key=lambda mx: mx.preference)
        first: dict[str, resolver.Mx] = {}
        for mx in hosts:
            first.setdefault(mx.host, mx)
        return list(first.values()) or self._temporary(f"the MX records of {domain} name no host")

    def _before_our_name(self, hosts: list[resolver.Mx]) -> list[resolver.Mx]:
        ours = [mx.preference for mx in hosts if mx.host in self._own_names]
        return [mx for mx in hosts if not ours or mx.preference < min(ours)]

    def _before_our_address(self, sites: list[_MxHost]) -> list[_MxHost]:
        ours = [site.mx.preference for site in sites if not self._own_names.isdisjoint(site.found.published)]
        return [site for site in sites if not ours or site.mx.preference < min(ours)]

    async def _look_up(self, hosts: list[resolver.Mx]) -> list[_MxHost]:
        found = await asyncio.gather(*(self._addresses.find(mx.host) for mx in hosts))
        return [_MxHost(mx, addresses) for mx, addresses in zip(hosts, found, strict=True)]

    def _no_route(self, domain: str, answer: resolver.Answer[resolver.Mx], sites: list[_MxHost]) -> NoRoute | None:
        if not sites:
            return self._permanent(f"mail for {domain} loops back to this host", ttl=answer.ttl)
        if not answer.records and sites[0].found.is_known and not sites[0].found.published:
            return self._permanent(f"{domain} has neither mail hosts nor addresses", ttl=answer.ttl)
        return None

    async def _secure(
        self, sites: list[_MxHost], *, domain: str, policy: mta_sts.Policy | None, is_authentic: bool
    ) -> tuple[tuple[Host, ...], list[str]]:
        """The addresses to try with their policies, and what is wrong with the hosts that have none."""
        details = [site.found.detail for site in sites if not site.found.to_try]
        sites = [site for site in sites if site.found.to_try]
        chosen = await asyncio.gather(
            *(
                self._tls.choose(
                    site.mx.host, domain=domain, policy=policy, is_authentic=is_authentic and site.found.is_authentic
                )
                for site in sites
            )
        )
        hosts: list[Host] = []
        for site, tls in zip(sites, chosen, strict=True):
            if isinstance(tls, str):
                details.append(tls)
            else:
                hosts += (Host(site.mx.host, address, self._port, tls) for address in site.found.to_try)
        return tuple(hosts), details

    def _permanent(self, detail: str, *, ttl: float = host_addresses.MAX_TTL_SECONDS) -> NoRoute:
        return NoRoute(permanent=True, detail=detail, valid_until=self._addresses.until(ttl))

    def _temporary(self, detail: str) -> NoRoute:
        return NoRoute(permanent=False, detail=detail, valid_until=self._addresses.after_failure())


def _provider_queue(published: list[resolver.Mx]) -> tuple[str, str]:
    """Pool and provider. A pool is shared only by domains all of whose hosts are the provider's, or are the same.

    Whoever is in a pool can slow it down: a stranger's host, however far behind, could speak for the provider.
    """
    provider = providers.of_hosts(mx.host for mx in published)
    if provider != providers.OTHERS:
        return provider, provider
    return destinations.provider_queue_name([mx.host for mx in published]), provider


def _own_names(names: Iterable[str], settings: config.Delivery) -> frozenset[str]:
    """What we are called and where we are. Loopback is everybody's: it says nothing about who listens there."""
    known = {name.lower().rstrip(".") for name in (*names, settings.hostname, *settings.source_addresses) if name}
    return frozenset(name for name in known if not (_is_address(name) and ipaddress.ip_address(name).is_loopback))


def _is_address(text: str) -> bool:
    try:
        return bool(ipaddress.ip_address(text))
    except ValueError:
        return False
