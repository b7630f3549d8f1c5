"""What the host itself needs: DNS records that its operator publishes once, and when its certificate is renewed."""

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from postroad.model.units import destinations, times

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


def host_records(host: str, addresses: Sequence[str], *, return_path_domain: str) -> tuple[HostRecord, ...]:
    """The records of a host that sends from these addresses; of which only public ones can be in DNS."""
    parsed = [ipaddress.ip_address(address) for address in addresses]
    public = [address for address in parsed if destinations.kind_of(address) is None]
    forward = [HostRecord(host, "A" if address.version == 4 else "AAAA", str(address)) for address in public]  # noqa: PLR2004
    reverse = [HostRecord(address.reverse_pointer, "PTR", host) for address in public]
    if not public:
        forward = [HostRecord(host, "A", UNKNOWN_ADDRESS)]
        reverse = [HostRecord(f"{UNKNOWN_ADDRESS}.in-addr.arpa", "PTR", host)]
    spf = HostRecord(host, "TXT", "v=spf1 a -all")
    if not return_path_domain:  # then each sender's domain has these
        return (*forward, *reverse, spf)
    mx = HostRecord(return_path_domain, "MX", f"{MX_PREFERENCE} {host}")
    # Senders may let reports about their domains come here (RFC 9990 section 4).
    consent = HostRecord(f"*._report._dmarc.{return_path_domain}", "TXT", "v=DMARC1")
    return (*forward, *reverse, spf, mx, consent)


# When a certificate is renewed: with a third of its lifetime left, and again with growing delays while that fails.
#
# The delays keep clear of the limits of public authorities, such as five failed validations of a name in an hour.

MINUTE: Final = 60 * times.SECOND
RETRY_DELAYS: Final = (
    15 * MINUTE,
    30 * MINUTE,
    times.HOUR,
    2 * times.HOUR,
    4 * times.HOUR,
    8 * times.HOUR,
    16 * times.HOUR,
    24 * times.HOUR,
)


def renew_at(*, issued_at: int, expires_at: int) -> int:
    return expires_at - (expires_at - issued_at) // 3


def retry_at(attempt_count: int, *, now: int) -> int:
    """When the next order is due after so many failures."""
    return now + RETRY_DELAYS[min(attempt_count, len(RETRY_DELAYS)) - 1]
