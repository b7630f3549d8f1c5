"""The DNS records of the host itself, which its operator publishes once.

Receivers look up the reverse name of the sending address, expect the EHLO name there, and that name to lead back to the
address. The EHLO name has an SPF record of its own (RFC 7208 section 2.3): it is checked for mail without a sender.
"""

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from postroad.model import special_addresses

# Where the public address is not known, as behind NAT.
UNKNOWN_ADDRESS: Final = "ADDRESS"
MX_PREFERENCE: Final = 10


@dataclass(frozen=True, slots=True)
class HostRecord:
    """A record to publish: `type` A, AAAA, PTR, TXT or MX."""

    name: str
    type: Literal["A", "AAAA", "PTR", "TXT", "MX"]
    value: str

    @property
    def zone_line(self) -> str:
        """The record as a line of a zone file (RFC 1035 section 5.1)."""
        if self.type == "TXT":
            return f'{self.name}. IN TXT "{self.value}"'
        return f"{self.name}. IN {self.type} {self.value}{'.' if self.type in {'PTR', 'MX'} else ''}"


def records(host: str, addresses: Sequence[str], *, return_path_domain: str) -> tuple[HostRecord, ...]:
    """The records of a host that sends from these addresses; of which only public ones can be in DNS."""
    parsed = [ipaddress.ip_address(address) for address in addresses]
    public = [one for one in parsed if special_addresses.kind_of(one) is None]
    forward = [HostRecord(host, "A" if one.version == 4 else "AAAA", str(one)) for one in public]  # noqa: PLR2004
    reverse = [HostRecord(one.reverse_pointer, "PTR", host) for one in public]
    if not public:
        forward = [HostRecord(host, "A", UNKNOWN_ADDRESS)]
        reverse = [HostRecord(f"{UNKNOWN_ADDRESS}.in-addr.arpa", "PTR", host)]
    spf = HostRecord(host, "TXT", "v=spf1 a -all")
    # Without such a domain, each sender's domain has this record.
    mx = [HostRecord(return_path_domain, "MX", f"{MX_PREFERENCE} {host}")] if return_path_domain else []
    return (*forward, *reverse, spf, *mx)
