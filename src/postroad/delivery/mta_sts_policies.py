"""MTA-STS policies (RFC 8461): announced in DNS, fetched over HTTPS, cached for their max_age.

A policy is fetched when its id is new, when it has expired, and once a day so that it does not expire (section 10.2).
One that cannot be fetched, or that DNS no longer announces, applies until it expires (section 5.1): removing the
announcement must not circumvent it. A domain that announces nothing costs one DNS query.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from postroad.concurrency import ttl_cache
from postroad.delivery import host_addresses
from postroad.network import https_get, resolver
from postroad.protocol.dns import mta_sts
from postroad.telemetry import logs

# Some 10 MB of ordinary policies.
MAX_POLICIES: Final = 20_000
# A policy with max_age 0 would be fetched for every message; a failed fetch is not repeated sooner either.
MIN_AGE_SECONDS: Final = 300.0
FAILURE_SECONDS: Final = 300.0
REFRESH_SECONDS: Final = 86_400.0
_OK: Final = 200


@dataclass(frozen=True, slots=True)
class _Cached:
    policy: mta_sts.Policy
    id: str
    refresh_at: float
    valid_until: float


@dataclass(frozen=True, slots=True)
class _FailedFetch:
    valid_until: float


class PolicyCache:
    """The policies that this process has cached."""

    def __init__(
        self,
        dns_resolver: resolver.Resolver,
        addresses: host_addresses.HostAddresses,
        *,
        https: https_get.Client,
        clock: Callable[[], float],
        log: logs.Logger | None = None,
    ) -> None:
        self._resolver = dns_resolver
        self._addresses = addresses
        self._https = https
        self._clock = clock
        self._log = log
        self._cached: ttl_cache.TtlCache[_Cached] = ttl_cache.TtlCache(max_entries=MAX_POLICIES, clock=clock)
        self._failed: ttl_cache.TtlCache[_FailedFetch] = ttl_cache.TtlCache(max_entries=MAX_POLICIES, clock=clock)

    async def announced(self, domain: str) -> str | None:
        """The id of the policy that DNS announces, if any."""
        answer = await self._resolver.txt(f"_mta-sts.{domain}")
        return mta_sts.policy_id(answer.records) if isinstance(answer, resolver.Answer) else None

    async def policy(self, domain: str, policy_id: str | None) -> mta_sts.Policy | None:
        """The policy that applies, given the announced id."""
        cached = self._cached.get(domain)
        if policy_id is None or (cached is not None and cached.id == policy_id and self._clock() < cached.refresh_at):
            return cached.policy if cached is not None else None
        attempt = f"{policy_id} {domain}"
        if self._failed.get(attempt) is None:
            fetched = await self._fetch(domain)
            if isinstance(fetched, mta_sts.Policy):
                self._store(domain, fetched, policy_id=policy_id)
                return fetched
            self._failed.put(attempt, _FailedFetch(self._clock() + FAILURE_SECONDS))
            if self._log is not None:
                self._log.warning("mta_sts_fetch_failed", domain=domain, detail=fetched, cached=cached is not None)
        return cached.policy if cached is not None else None

    def _store(self, domain: str, policy: mta_sts.Policy, *, policy_id: str) -> None:
        now, seconds = self._clock(), max(policy.max_age, MIN_AGE_SECONDS)
        refresh_at = now + min(REFRESH_SECONDS, seconds)
        self._cached.put(domain, _Cached(policy, policy_id, refresh_at=refresh_at, valid_until=now + seconds))

    async def _fetch(self, domain: str) -> mta_sts.Policy | str:
        """The policy, or why there is none."""
        host = f"mta-sts.{domain}"
        found = await self._addresses.find(host)
        if not found.to_try:
            return found.detail
        response = await self._https.get(host, mta_sts.WELL_KNOWN_PATH, addresses=found.to_try)
        if isinstance(response, https_get.Failure):
            return response.detail
        if response.status != _OK or response.media_type != mta_sts.MEDIA_TYPE:
            return f"{host}: status {response.status}, {response.media_type or 'no media type'}"
        return mta_sts.parse_policy(response.body) or f"{host}: not a policy"
