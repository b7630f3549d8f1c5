"""How the connection to one mail host is to be secured: what the operator asks for, or more when the destination does.

    TLSA records that count (DANE, RFC 7672)  >  an MTA-STS policy that is enforced (RFC 8461)  >  the setting

TLSA records count only when DNSSEC covers the way to them: the MX records, the host's addresses and the records
themselves. Where that is so and DNS fails to say whether there are any, the host is not used now (RFC 7672 section
2.1.2). An MX name that is an alias is looked up under its own name only.
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
        """What holds when the destination wants nothing."""
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
            return f"DNS does not answer for {name}: {answer.detail}"
        if not answer.records or not answer.is_authentic:
            return None
        usable = tuple(record for record in answer.records if record.is_usable)
        if not usable:
            # RFC 7672 section 2.2: there is encryption, then, but nothing to check it against.
            return tls_policy.TlsPolicy(tls_policy.Mode.REQUIRED, reason=f"TLSA of {host}, none usable")
        names = (host,) if host == domain else (host, domain)
        return tls_policy.TlsPolicy(tls_policy.Mode.DANE, names=names, tlsa=usable, reason=f"TLSA of {host}")
