"""The TLS policy of a connection to one mail host: the setting, or stricter when the domain asks for it.

    usable TLSA records (DANE, RFC 7672)  >  an enforced MTA-STS policy (RFC 8461)  >  the setting

An MTA-STS policy that is being tested changes nothing, but its failures are noted if results are reported (RFC 8460).

TLSA records count only when DNSSEC covers the MX records, the host's addresses and the records themselves. If so and
the TLSA lookup fails, the host is not used now (RFC 7672 section 2.1.2). An MX name that is an alias is looked up under
its own name only.
"""

import itertools
from collections.abc import Iterable
from typing import Final

import msgspec

from postroad import config
from postroad.model.delivery import tls_policy
from postroad.network.dns import resolver
from postroad.protocol.dns import mta_sts
from postroad.protocol.reports import tls_report

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
        records = (f"{one.usage} {one.selector} {one.matching_type} {one.data.hex()}" for one in tls.tlsa)
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
