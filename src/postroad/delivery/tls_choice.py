"""The TLS policy of a connection to one mail host: the setting, or stricter when the domain asks for it.

    usable TLSA records (DANE, RFC 7672)  >  an enforced MTA-STS policy (RFC 8461)  >  the setting

An MTA-STS policy that is being tested changes nothing, but its failures are noted if results are reported (RFC 8460).

TLSA records count only when DNSSEC covers the MX records, the host's addresses and the records themselves. If so and
the TLSA lookup fails, the host is not used now (RFC 7672 section 2.1.2). An MX name that is an alias is looked up under
its own name only.

MTA-STS policies are announced in DNS, fetched over HTTPS and cached for their max_age. A policy is fetched when its id
is new, when it has expired, and once a day so that it does not expire (RFC 8461 section 10.2). One that cannot be
fetched, or that DNS no longer announces, applies until it expires (section 5.1): removing the announcement must not
circumvent it. Therefore policies are stored as well: a restart, or another host, is no way around them either. A domain
that announces nothing costs one DNS query and, once an hour, one read.
"""

import itertools
from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from postroad import config
from postroad.concurrency import caches
from postroad.delivery import host_addresses
from postroad.model.delivery import tls_policy
from postroad.model.units import times
from postroad.network.dns import resolver
from postroad.network.http import https_get
from postroad.protocol.dns import mta_sts
from postroad.protocol.reports import tls_report
from postroad.storage.engine import store
from postroad.storage.mail import tls_policies as stored_policies
from postroad.telemetry import logs

# A policy may have dozens of lines and a host several TLSA records: the beginning shows which one it is. Results are
# stored with it, and strangers write it.
MAX_REPORTED_CHARACTERS: Final = 1_000
APPLIES_MTA_STS: Final = frozenset({tls_policy.Mode.VERIFIED, tls_policy.Mode.TESTING})
BY_SETTING: Final = {
    "off": tls_policy.TlsPolicy(tls_policy.Mode.PLAIN),
    "opportunistic": tls_policy.OPPORTUNISTIC,
    "required": tls_policy.TlsPolicy(tls_policy.Mode.REQUIRED, reason="delivery.tls"),
}


class Refusal(msgspec.Struct, frozen=True):
    """Why a host must not be used now: for people, and as it is reported to the domain."""

    detail: str
    failure: tls_report.FailureType


class TlsChoice:
    """Chooses the policy for a host. `tests`: policies that are being tested are tried."""

    def __init__(self, settings: config.Delivery, dns_resolver: resolver.Resolver, *, tests: bool = False) -> None:
        self._resolver = dns_resolver
        self._setting = BY_SETTING[settings.tls]
        self._port = settings.mx_port
        self._tests = tests and settings.tls == "opportunistic"
        self._asks_for_tlsa = settings.dane and settings.tls != "off"

    @property
    def setting(self) -> tls_policy.TlsPolicy:
        """The policy when the domain asks for none."""
        return self._setting

    async def choose(
        self, host: str, *, domain: str, policy: mta_sts.Policy | None, is_authentic: bool
    ) -> tls_policy.TlsPolicy | Refusal:
        """The policy for a host, or why it must not be used now."""
        if self._asks_for_tlsa and is_authentic:
            found = await self._by_tlsa(host, domain=domain)
            if found is not None:
                return found
        if policy is not None and policy.mode is mta_sts.Mode.TESTING and self._tests and policy.allows(host):
            return tls_policy.TlsPolicy(tls_policy.Mode.TESTING, names=(host,), reason=f"MTA-STS of {domain}")
        if policy is None or policy.mode is not mta_sts.Mode.ENFORCE:
            return self._setting
        if not policy.allows(host):
            detail = f"the MTA-STS policy of {domain} does not allow {host}"
            return Refusal(detail, tls_report.FailureType.VALIDATION_FAILURE)
        return tls_policy.TlsPolicy(tls_policy.Mode.VERIFIED, names=(host,), reason=f"MTA-STS of {domain}")

    async def _by_tlsa(self, host: str, *, domain: str) -> tls_policy.TlsPolicy | Refusal | None:
        name = f"_{self._port}._tcp.{host}"
        answer = await self._resolver.tlsa(name)
        if isinstance(answer, resolver.Failure):
            detail = f"DNS lookup failed for {name}: {answer.detail}"
            return Refusal(detail, tls_report.FailureType.DNSSEC_INVALID)
        if not answer.records or not answer.is_authentic:
            return None
        usable = tls_policy.limited(record for record in answer.records if record.is_usable)
        if not usable:
            # RFC 7672 section 2.2: encryption is required, but there is nothing to verify it against.
            reason = f"TLSA of {host}, none usable"
            unusable = tls_policy.limited(answer.records)
            return tls_policy.TlsPolicy(tls_policy.Mode.REQUIRED, tlsa=unusable, reason=reason)
        names = (host,) if host == domain else (host, domain)
        return tls_policy.TlsPolicy(tls_policy.Mode.DANE, names=names, tlsa=usable, reason=f"TLSA of {host}")


def of_upstream(upstream: config.Upstream) -> tls_policy.TlsPolicy:
    """The policy for an upstream: a certificate for its host, or no TLS at all."""
    if upstream.tls == "off":
        return BY_SETTING["off"]
    return tls_policy.TlsPolicy(
        tls_policy.Mode.VERIFIED, names=(upstream.host,), reason=f"upstreams.{upstream.name}.tls"
    )


def reported(
    tls: tls_policy.TlsPolicy | Refusal, *, host: str, domain: str, policy: mta_sts.Policy | None
) -> tuple[tls_report.Policy | None, tls_report.Result | None]:
    """The policy for which sessions with a host are counted, if they are, and a result that is known without one."""
    found = _reported_policy(tls, host=host, domain=domain, policy=policy)
    if isinstance(tls, Refusal):
        return None, tls_report.Result(found, tls.failure, mx_host=host)
    if tls.mode is tls_policy.Mode.PLAIN:
        return None, None
    if found.type is tls_report.PolicyType.TLSA and tls.mode is not tls_policy.Mode.DANE:
        # None of the records is usable; a session proves nothing.
        return None, tls_report.Result(found, tls_report.FailureType.TLSA_INVALID, mx_host=host)
    if found.type is tls_report.PolicyType.STS and tls.mode not in APPLIES_MTA_STS:
        # The policy is being tested, and a session would say nothing about it.
        is_excluded = policy is not None and not policy.allows(host)
        excluded = tls_report.Result(found, tls_report.FailureType.VALIDATION_FAILURE, mx_host=host)
        return None, excluded if is_excluded else None
    return found, None


def _reported_policy(
    tls: tls_policy.TlsPolicy | Refusal, *, host: str, domain: str, policy: mta_sts.Policy | None
) -> tls_report.Policy:
    """The policy of a host (RFC 8460 section 4.4)."""
    if isinstance(tls, tls_policy.TlsPolicy) and tls.tlsa:
        records = (f"{tlsa.usage} {tlsa.selector} {tlsa.matching_type} {tlsa.data.hex()}" for tlsa in tls.tlsa)
        return tls_report.Policy(tls_report.PolicyType.TLSA, host, _beginning(records))
    if isinstance(tls, Refusal) and tls.failure is tls_report.FailureType.DNSSEC_INVALID:
        return tls_report.Policy(tls_report.PolicyType.TLSA, host)
    if policy is None or policy.mode is mta_sts.Mode.NONE:
        return tls_report.Policy(tls_report.PolicyType.NONE, domain)
    return tls_report.Policy(tls_report.PolicyType.STS, domain, _beginning(policy.lines), _beginning(policy.patterns))


def _beginning(lines: Iterable[str]) -> tuple[str, ...]:
    """As many lines as have room."""
    totals = itertools.accumulate(map(len, kept := tuple(lines)))
    return tuple(line for line, total in zip(kept, totals, strict=True) if total <= MAX_REPORTED_CHARACTERS)


# Some 20 MB of ordinary policies, and 160 MB of the largest.
MAX_POLICIES: Final = 20_000
# A policy with max_age 0 would be fetched for every message; a failed fetch is not repeated sooner either.
MIN_AGE_SECONDS: Final = 300.0
FAILURE_SECONDS: Final = 300.0
REFRESH_SECONDS: Final = 86_400.0
# How long a domain without a stored policy is not looked up again: another host may have fetched one.
UNKNOWN_SECONDS: Final = 3600.0
_OK: Final = 200

# Counts a result for a domain.
Report = Callable[[str, tls_report.Result], None]


class _Cached(msgspec.Struct, frozen=True):
    """What is known of a domain; without a policy, only that none is stored."""

    policy: mta_sts.Policy | None
    id: str
    refresh_at: float
    valid_until: float


class _FailedFetch(msgspec.Struct, frozen=True):
    valid_until: float


class _NoPolicy(msgspec.Struct, frozen=True):
    """Why a policy could not be fetched: for people, and as it is reported to the domain."""

    detail: str
    failure: tls_report.FailureType = tls_report.FailureType.STS_POLICY_FETCH_ERROR


class StoredPolicies:
    """The policies that all processes share. `clock` gives microseconds since 1970."""

    def __init__(self, database: store.Store, clock: Callable[[], int]) -> None:
        self._store = database
        self._clock = clock

    async def load(self, domain: str) -> tuple[mta_sts.Policy, str, float] | None:
        """Policy, id and remaining seconds. Raises if the store cannot be read: mail waits rather than lose its TLS."""
        now = self._clock()
        async with self._store.reading() as tx:
            found = await stored_policies.find_policy(tx, domain, now=now)
        policy = mta_sts.parse_policy(found.policy.encode()) if found is not None else None
        if found is None or policy is None:
            return None
        return policy, found.policy_id, min((found.valid_until - now) / times.SECOND, _seconds(policy))

    async def save(self, domain: str, policy: mta_sts.Policy, *, policy_id: str) -> None:
        """Store a policy that was fetched now."""
        now = self._clock()
        valid_until = now + round(_seconds(policy) * times.SECOND)
        row = stored_policies.StoredPolicy(domain, policy_id, "\n".join(policy.lines), now, valid_until)
        async with self._store.transaction() as tx:
            await stored_policies.put_policy(tx, row)


class PolicyCache:
    """The policies that this process has cached, in front of the stored ones."""

    def __init__(
        self,
        dns_resolver: resolver.Resolver,
        addresses: host_addresses.HostAddresses,
        *,
        https: https_get.Client,
        clock: Callable[[], float],
        stored: StoredPolicies | None = None,
        report: Report | None = None,
        log: logs.Logger | None = None,
    ) -> None:
        self._resolver = dns_resolver
        self._addresses = addresses
        self._https = https
        self._clock = clock
        self._stored = stored
        self._report = report
        self._log = log
        self._cached: caches.TtlCache[_Cached] = caches.TtlCache(max_entries=MAX_POLICIES, clock=clock)
        self._failed: caches.TtlCache[_FailedFetch] = caches.TtlCache(max_entries=MAX_POLICIES, clock=clock)

    async def close(self) -> None:
        await self._cached.close()

    async def announced(self, domain: str) -> str | None:
        """The id of the policy that DNS announces, if any."""
        answer = await self._resolver.txt(f"_mta-sts.{domain}")
        return mta_sts.policy_id(answer.records) if isinstance(answer, resolver.Answer) else None

    async def policy(self, domain: str, policy_id: str | None) -> mta_sts.Policy | None:
        """The policy that applies, given the announced id."""
        cached = await self._cached.get_or_fetch(domain, self._load)
        is_current = cached.id == policy_id and self._clock() < cached.refresh_at
        attempt = f"{policy_id} {domain}"
        if policy_id is None or is_current or self._failed.get(attempt) is not None:
            return cached.policy
        fetched = await self._fetch(domain)
        if isinstance(fetched, mta_sts.Policy):
            self._cached.put(domain, self._entry(fetched, policy_id, seconds=_seconds(fetched)))
            await self._save(domain, fetched, policy_id=policy_id)
            return fetched
        self._failed.put(attempt, _FailedFetch(self._clock() + FAILURE_SECONDS))
        if self._log is not None:
            self._log.warning(
                "mta_sts_fetch_failed", domain=domain, detail=fetched.detail, cached=cached.policy is not None
            )
        if self._report is not None:
            policy = tls_report.Policy(tls_report.PolicyType.STS, domain)
            self._report(domain, tls_report.Result(policy, fetched.failure))
        return cached.policy

    async def _load(self, domain: str) -> _Cached:
        found = await self._stored.load(domain) if self._stored is not None else None
        if found is None:
            return _Cached(None, "", refresh_at=0.0, valid_until=self._clock() + UNKNOWN_SECONDS)
        policy, policy_id, seconds = found
        return self._entry(policy, policy_id, seconds=seconds)

    async def _save(self, domain: str, policy: mta_sts.Policy, *, policy_id: str) -> None:
        """Store a policy. It applies in this process even if that fails; the next fetch stores it."""
        if self._stored is None:
            return
        try:
            await self._stored.save(domain, policy, policy_id=policy_id)
        except store.UNAVAILABLE as error:
            if self._log is not None:
                self._log.warning("mta_sts_policy_not_stored", domain=domain, error=error.message)

    def _entry(self, policy: mta_sts.Policy, policy_id: str, *, seconds: float) -> _Cached:
        """A policy that applies for so many more seconds."""
        now, total = self._clock(), _seconds(policy)
        refresh_at = now + min(REFRESH_SECONDS, total) - (total - seconds)
        return _Cached(policy, policy_id, refresh_at=refresh_at, valid_until=now + seconds)

    async def _fetch(self, domain: str) -> mta_sts.Policy | _NoPolicy:
        host = f"mta-sts.{domain}"
        found = await self._addresses.find(host)
        if not found.to_try:
            return _NoPolicy(found.detail)
        response = await self._https.get(host, mta_sts.WELL_KNOWN_PATH, addresses=found.to_try)
        if isinstance(response, https_get.Failure):
            if response.is_about_tls:
                return _NoPolicy(response.detail, tls_report.FailureType.STS_WEBPKI_INVALID)
            return _NoPolicy(response.detail)
        if response.status != _OK or response.media_type != mta_sts.MEDIA_TYPE:
            return _NoPolicy(f"{host}: status {response.status}, {response.media_type or 'no media type'}")
        policy = mta_sts.parse_policy(response.body)
        return policy or _NoPolicy(f"{host}: not a policy", tls_report.FailureType.STS_POLICY_INVALID)


def _seconds(policy: mta_sts.Policy) -> float:
    return max(float(policy.max_age), MIN_AGE_SECONDS)
