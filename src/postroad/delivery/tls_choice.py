"""The TLS policy of a connection to one mail host: the setting, or stricter when the domain asks for it.

    usable TLSA records (DANE, RFC 7672)  >  an enforced MTA-STS policy (RFC 8461)  >  the setting

TLSA records count only when DNSSEC covers the MX records, the host's addresses and the records themselves. If so and
the TLSA lookup fails, the host is not used now (RFC 7672 section 2.1.2). An MX name that is an alias is looked up under
its own name only.
"""

from typing import Final

from postroad import config
from postroad.model import tls_policy
from postroad.network import resolver
from postroad.protocol.dns import mta_sts

BY_SETTING: Final = {
    "off": tls_policy.TlsPolicy(tls_policy.Mode.PLAIN),
    "opportunistic": tls_policy.OPPORTUNISTIC,
    "required": tls_policy.TlsPolicy(tls_policy.Mode.REQUIRED, reason="delivery.tls"),
}


class TlsChoice:
    """Chooses the policy for a host."""

    def __init__(self, settings: config.Delivery, dns_resolver: resolver.Resolver) -> None:
        self._resolver = dns_resolver
        self._setting = BY_SETTING[settings.tls]
        self._port = settings.mx_port
        self._asks_for_tlsa = settings.dane and settings.tls != "off"

    @property
    def setting(self) -> tls_policy.TlsPolicy:
        """The policy when the domain asks for none."""
        return self._setting

    async def choose(
        self, host: str, *, domain: str, policy: mta_sts.Policy | None, is_authentic: bool
    ) -> tls_policy.TlsPolicy | str:
        """The policy for a host, or why it must not be used now."""
        if self._asks_for_tlsa and is_authentic:
            found = await self._by_tlsa(host, domain=domain)
            if found is not None:
                return found
        if policy is None or policy.mode is not mta_sts.Mode.ENFORCE:
            return self._setting
        if not policy.allows(host):
            return f"the MTA-STS policy of {domain} does not allow {host}"
        return tls_policy.TlsPolicy(tls_policy.Mode.VERIFIED, names=(host,), reason=f"MTA-STS of {domain}")

    async def _by_tlsa(self, host: str, *, domain: str) -> tls_policy.TlsPolicy | str | None:
        name = f"_{self._port}._tcp.{host}"
        answer = await self._resolver.tlsa(name)
        if isinstance(answer, resolver.Failure):
            return f"DNS lookup failed for {name}: {answer.detail}"
        if not answer.records or not answer.is_authentic:
            return None
        usable = tuple(record for record in answer.records if record.is_usable)
        if not usable:
            # RFC 7672 section 2.2: encryption is required, but there is nothing to verify it against.
            return tls_policy.TlsPolicy(tls_policy.Mode.REQUIRED, reason=f"TLSA of {host}, none usable")
        names = (host,) if host == domain else (host, domain)
        return tls_policy.TlsPolicy(tls_policy.Mode.DANE, names=names, tlsa=usable, reason=f"TLSA of {host}")
