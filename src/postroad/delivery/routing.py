"""The route of a domain or of an upstream: hosts in the order to try, with addresses, TLS policies and provider queue.

RFC 5321 section 5.1 and RFC 7505: mail hosts by preference, equal ones shuffled; without MX records the domain itself;
a null MX accepts no mail. If this host is one of the mail hosts, only those preferred to it are left. The result is a
value: a route, or a cause why there is none. Unresolvable mail hosts and all DNS failures are temporary. MX records
that contain an address or no valid host name are ignored.

An expired route is used for a few more minutes while DNS does not answer, as RFC 8767 allows: whoever asks for a domain
may wait for queries that others delay, and everybody who sends to it would wait as well. It keeps its TLS policies.
"""

import asyncio
import dataclasses
import ipaddress
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from postroad import config
from postroad.concurrency import caches
from postroad.delivery import host_addresses, tls_choice
from postroad.model.delivery import adaptive_rate, providers, tls_policy
from postroad.model.units import destinations
from postroad.network.dns import resolver
from postroad.network.http import https_get
from postroad.protocol.dns import mta_sts
from postroad.protocol.reports import tls_report
from postroad.protocol.smtp import values
from postroad.telemetry import logs

# As many as there are breakers of hosts. Some 20 MB; if all have the longest names and as many hosts as are kept,
# 100 MB, and with reports 200 MB for MTA-STS and 700 MB for DANE.
MAX_DOMAINS: Final = 20_000
# A domain that cannot be reached by ten hosts is unreachable.
MAX_HOSTS: Final = 10
# What is tried of all of them: two addresses of six hosts, or more of fewer hosts. Cut here because routes are cached.
MAX_ADDRESSES: Final = 12
# The first two addresses of a host are of both families, if it has both: a source address can use only one of them.
MIN_ADDRESSES_PER_HOST: Final = 2
# A detail is for people: a few hosts show what is wrong.
SHOWN_ERRORS: Final = 3
# Longer than a lookup takes that waits for many silent name servers; short for a domain that is moving its mail.
STALE_SECONDS: Final = 300.0

LOCALHOST: Final = ("127.0.0.1", "::1")

_CountedFor = tuple[str, tls_report.Policy] | None


@dataclass(frozen=True, slots=True)
class Host:
    """One address to try. `counted_for`: the domain and the policy for which TLS results are counted, if they are."""

    name: str
    address: str
    port: int
    tls: tls_policy.TlsPolicy
    counted_for: _CountedFor = None
    upstream: str = ""  # the name of the upstream that it belongs to
    source: str = ""  # the name of the source address to connect from, if the system does not choose it

    @property
    def key(self) -> tuple[str, int, str, str]:
        """What a failure is about: an upstream's may be that of its login, and a provider may block one source."""
        return self.address, self.port, self.upstream, self.source


@dataclass(frozen=True, slots=True)
class Route:
    """Hosts in the order to try. `provider` is a field of `config.Providers`, whose limits the provider queue has.

    An upstream has limits of its own.

    After `valid_until` it is looked up again, and used until `stale_until` as long as DNS does not answer.
    """

    provider_queue: str
    provider: str
    hosts: tuple[Host, ...]
    valid_until: float
    stale_until: float = 0.0
    source: str = ""  # that of all hosts

    @property
    def queue_name(self) -> str:
        """The provider queue of its source address: providers judge each address for itself."""
        return f"{self.provider_queue} {self.source}" if self.source else self.provider_queue

    @property
    def is_upstream(self) -> bool:
        return self.provider.startswith(providers.UPSTREAM_PREFIX)


class NoRoute(msgspec.Struct, frozen=True):
    """Why there is no route. `detail` is for people."""

    cause: values.Cause
    detail: str
    valid_until: float

    @property
    def permanent(self) -> bool:
        """Whether trying again cannot help."""
        return self.cause in values.PERMANENT_CAUSES


class _MxHost(msgspec.Struct, frozen=True):
    """A mail host and its addresses."""

    mx: resolver.Mx
    found: host_addresses.Addresses


class Router:
    """Finds routes and caches them as long as DNS allows. `own_names` are names and addresses of this host.

    Domains are in lower case and A-labels, as `protocol.address` gives them, or address literals. An upstream is asked
    for by the name of its provider queue.
    """

    def __init__(
        self,
        settings: config.Delivery,
        dns_resolver: resolver.Resolver,
        *,
        clock: Callable[[], float],
        shuffle: Callable[[list[resolver.Mx]], None],
        own_names: Iterable[str] = (),
        upstreams: Iterable[config.Upstream] = (),
        sources: Sequence[config.Source] = (),
        https: https_get.Client | None = None,
        stored_policies: tls_choice.StoredPolicies | None = None,
        report: tls_choice.Report | None = None,
        log: logs.Logger | None = None,
    ) -> None:
        self._port = settings.mx_port
        self._clock = clock
        self._resolver = dns_resolver
        self._shuffle = shuffle
        self._own_names = _own_names((*own_names, settings.hostname), sources)
        self._upstreams = {upstream.provider_queue: upstream for upstream in upstreams}
        self._report = report
        self._tls = tls_choice.TlsChoice(settings, dns_resolver, tests=report is not None)
        self._addresses = host_addresses.HostAddresses(settings, dns_resolver, clock=clock, sources=sources)
        self._policies = (
            tls_choice.PolicyCache(
                dns_resolver,
                self._addresses,
                https=https or https_get.Client(),
                clock=clock,
                stored=stored_policies,
                report=report,
                log=log,
            )
            if settings.mta_sts and settings.tls != "off"
            else None
        )
        self._routes: caches.TtlCache[Route | NoRoute] = caches.TtlCache(max_entries=MAX_DOMAINS, clock=clock)

    def cached(self, name: str) -> Route | NoRoute | None:
        """The cached route, also one that is stale; None when there is nothing to use until it is looked up."""
        known = self._routes.peek(name)
        if known is None or self._clock() < known.valid_until:
            return known
        return self._stale(name)

    async def route(self, name: str) -> Route | NoRoute:
        if name in self._upstreams:
            return await self._routes.get_or_fetch(name, self._to_upstream)
        find = self._to_literal if name.startswith("[") else self._to_domain
        return await self._routes.get_or_fetch(name, find)

    async def close(self) -> None:
        await self._routes.close()
        await self._addresses.close()
        if self._policies is not None:
            await self._policies.close()

    # Fixed destinations.

    async def _to_upstream(self, name: str) -> Route | NoRoute:
        """The operator configured the host: none of its addresses is blocked, and a wrong name is the operator's."""
        upstream = self._upstreams[name]
        found = await self._operator_addresses(upstream.host)
        if not found.to_try:
            cause = values.Cause.CONFIGURATION if found.is_known else values.Cause.DNS_FAILED
            failure = NoRoute(cause, f"upstreams.{upstream.name}.host: {found.detail}", found.valid_until)
            return failure if found.is_known else self._after_silence(name, failure)
        tls = tls_choice.of_upstream(upstream)
        hosts = tuple(
            Host(upstream.host, address, upstream.port, tls, upstream=upstream.name) for address in found.to_try
        )
        return Route(name, name, hosts, found.valid_until, found.valid_until + STALE_SECONDS)

    async def _operator_addresses(self, host: str) -> host_addresses.Addresses:
        if host == "localhost":  # RFC 6761 section 6.3: not for name servers
            found = self._addresses.of_literals(LOCALHOST)
        elif _is_address(host):
            found = self._addresses.of_literals((host,))
        else:
            found = await self._addresses.find(host.lower())
        return self._addresses.as_trusted(found)

    async def _to_literal(self, domain: str) -> Route | NoRoute:
        address = destinations.literal(domain)
        if address is None:
            return self._permanent(values.Cause.BAD_ADDRESS, f"{domain} is not an IP address literal")
        found = self._addresses.of_literals((str(address),))
        if str(address) in self._own_names:
            return self._permanent(values.Cause.MAIL_LOOP, f"mail for {domain} loops back to this host")
        if not found.to_try:
            # A blocked address stays blocked; the records of a domain may be corrected before its last attempt, and our
            # own source addresses may change.
            is_blocked = self._addresses.why_blocked(str(address)) is not None
            detail = f"{domain}: {found.detail}"
            return self._permanent(values.Cause.NO_ROUTE, detail) if is_blocked else self._temporary(detail)
        hosts = tuple(Host(domain, text, self._port, self._tls.setting) for text in found.to_try)
        return Route(destinations.provider_queue_name(found.to_try), providers.OTHERS, hosts, found.valid_until)

    # Domains.

    async def _to_domain(self, name: str) -> Route | NoRoute:
        domain = name.lower().removesuffix(".")
        if not destinations.is_host_name(domain):
            return self._permanent(values.Cause.BAD_ADDRESS, f"{domain} is not a valid domain name")
        answer, policy_id = await asyncio.gather(self._resolver.mx(domain), self._announced(domain))
        if isinstance(answer, resolver.Failure):
            failure = self._temporary(f"DNS lookup failed for {domain}: {answer.detail}")
            return self._after_silence(domain, failure)
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
            detail = f"no usable mail host for {domain}: {'; '.join(details[:SHOWN_ERRORS])}"
            is_blocked = all(site.found.is_blocked for site in sites)
            failure = self._temporary(detail, values.Cause.PRIVATE_ADDRESS if is_blocked else values.Cause.DNS_FAILED)
            # An answer counts, and so does a TLS policy that refuses a host: only silence leaves the route as it was.
            is_silent = not any(site.found.is_known for site in sites)
            return self._after_silence(domain, failure) if is_silent else failure
        provider_queue, provider = _provider_queue(published)
        # A host without addresses is looked up again soon.
        valid_until = min(self._addresses.until(answer.ttl), *(site.found.valid_until for site in sites))
        return Route(provider_queue, provider, hosts, valid_until, valid_until + STALE_SECONDS)

    def _stale(self, name: str) -> Route | None:
        known = self._routes.peek(name)
        return known if isinstance(known, Route) and self._clock() < known.stale_until else None

    def _after_silence(self, name: str, failure: NoRoute) -> Route | NoRoute:
        """The route as it was while it may be used, until the next lookup; then the failure."""
        known = self._stale(name)
        if known is None:
            return failure
        return dataclasses.replace(known, valid_until=min(failure.valid_until, known.stale_until))

    async def _announced(self, domain: str) -> str | None:
        return await self._policies.announced(domain) if self._policies is not None else None

    def _published(self, domain: str, answer: resolver.Answer[resolver.Mx]) -> list[resolver.Mx] | NoRoute:
        """The mail hosts in the order to try."""
        if not answer.exists:
            return self._permanent(values.Cause.DOMAIN_NOT_FOUND, f"the domain {domain} does not exist", ttl=answer.ttl)
        if not answer.records:
            return [resolver.Mx(0, domain)]
        if [mx.host for mx in answer.records] == [""]:
            return self._permanent(values.Cause.NULL_MX, f"{domain} does not accept mail (null MX)", ttl=answer.ttl)
        hosts = [mx for mx in answer.records if destinations.is_host_name(mx.host)]
        self._shuffle(hosts)
        hosts.sort(key=lambda mx: mx.preference)
        first: dict[str, resolver.Mx] = {}
        for mx in hosts:
            first.setdefault(mx.host, mx)
        return list(first.values()) or self._temporary(f"the MX records of {domain} contain no valid host name")

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
            return self._permanent(values.Cause.MAIL_LOOP, f"mail for {domain} loops back to this host", ttl=answer.ttl)
        if not answer.records and sites[0].found.is_known and not sites[0].found.published:
            return self._permanent(
                values.Cause.NO_ROUTE, f"{domain} has neither MX nor address records", ttl=answer.ttl
            )
        return None

    async def _secure(
        self, sites: list[_MxHost], *, domain: str, policy: mta_sts.Policy | None, is_authentic: bool
    ) -> tuple[tuple[Host, ...], list[str]]:
        """The addresses to try with their TLS policies, and details of the hosts that are not usable."""
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
        per_host = max(MAX_ADDRESSES // max(len(sites), 1), MIN_ADDRESSES_PER_HOST)
        # The hosts share a policy of their domain: it is text of hundreds of characters.
        shared: dict[_CountedFor, _CountedFor] = {}
        for site, tls in zip(sites, chosen, strict=True):
            name = site.mx.host
            counted_for = self._count(tls, host=name, domain=domain, policy=policy)
            counted_for = shared.setdefault(counted_for, counted_for)
            if isinstance(tls, tls_choice.Refusal):
                details.append(tls.detail)
            else:
                hosts += (Host(name, address, self._port, tls, counted_for) for address in site.found.to_try[:per_host])
        return tuple(hosts[:MAX_ADDRESSES]), details

    def _count(
        self, tls: tls_policy.TlsPolicy | tls_choice.Refusal, *, host: str, domain: str, policy: mta_sts.Policy | None
    ) -> _CountedFor:
        """Count what is known without a session; returns for what sessions are counted, if they are."""
        if self._report is None:
            return None
        reported, result = tls_choice.reported(tls, host=host, domain=domain, policy=policy)
        if result is not None:
            self._report(domain, result)
        return None if reported is None else (domain, reported)

    def _permanent(self, cause: values.Cause, detail: str, *, ttl: float = host_addresses.MAX_TTL_SECONDS) -> NoRoute:
        return NoRoute(cause, detail, self._addresses.until(ttl))

    def _temporary(self, detail: str, cause: values.Cause = values.Cause.DNS_FAILED) -> NoRoute:
        return NoRoute(cause, detail, self._addresses.after_failure())


def _provider_queue(published: list[resolver.Mx]) -> tuple[str, str]:
    """Provider queue and provider. Domains share a queue only if all their hosts are the provider's, or are the same.

    Every host in a provider queue can slow it down, so a foreign host must not share the provider's.
    """
    provider = providers.of_hosts(mx.host for mx in published)
    if provider != providers.OTHERS:
        return provider, provider
    return destinations.provider_queue_name([mx.host for mx in published]), provider


def _own_names(names: Iterable[str], sources: Iterable[config.Source]) -> frozenset[str]:
    """Names and addresses of this host, without loopback addresses: every host has those."""
    of_sources = (text for source in sources for text in (source.address, source.hello_name))
    known = {name.lower().rstrip(".") for name in (*names, *of_sources) if name}
    return frozenset(name for name in known if not (_is_address(name) and ipaddress.ip_address(name).is_loopback))


def _is_address(text: str) -> bool:
    try:
        return bool(ipaddress.ip_address(text))
    except ValueError:
        return False


# A circuit breaker for each host address, shared by all provider queues.
#
# An upstream and a source address have breakers of their own.
#
# A host that does not answer is skipped for a while, so that mail goes to the next one at once. A destination whose
# hosts are all down is skipped until a probe succeeds.

# Enough for every host that a busy installation contacts in an hour; the least recently used is evicted.
MAX_KNOWN_HOSTS: Final = 20_000


class Hosts:
    """The breakers of hosts."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._breakers: caches.LruCache[tuple[str, int, str, str], adaptive_rate.Breaker] = caches.LruCache(
            MAX_KNOWN_HOSTS
        )

    def usable(self, route: Route) -> Iterator[Host]:
        """The hosts to try, in order; each breaker is checked when its turn comes."""
        for host in route.hosts:
            known = self._breakers.get(host.key)
            if known is None or known.may_try(self._clock()):
                yield host

    def blocked_until(self, route: Route) -> float | None:
        """When the first host of the route may be tried again; None when one may be tried now."""
        soonest: float | None = None
        for host in route.hosts:
            known = self._breakers.get(host.key)
            until = known.open_until(self._clock()) if known else None
            if until is None:
                return None
            soonest = until if soonest is None else min(soonest, until)
        return soonest

    def is_proven(self, route: Route) -> bool:
        """Whether a host of the route answers, or nothing is known of it."""
        return any(
            known is None or known.state(self._clock()) == "closed"
            for host in route.hosts
            for known in (self._breakers.get(host.key),)
        )

    def answered(self, host: Host) -> None:
        """The host answers."""
        if known := self._breakers.get(host.key):
            known.succeeded()

    def failed(self, host: Host) -> None:
        """The host does not answer."""
        known = self._breakers.get(host.key) or adaptive_rate.Breaker()
        known.failed(self._clock())
        self._breakers.put(host.key, known)
