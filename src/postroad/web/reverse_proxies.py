"""The client address behind reverse proxies: the last address that no trusted proxy wrote.

Each proxy appends its peer to `X-Forwarded-For`, so the field is read from its end and only as far as its writers are
trusted. Anything before that may be forged.
"""

import ipaddress
from collections.abc import Sequence

from postroad.web import routing

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
FORWARDED_FIELD = b"x-forwarded-for"


class Proxies:
    def __init__(self, networks: Sequence[str]) -> None:
        self._networks: tuple[Network, ...] = tuple(map(ipaddress.ip_network, networks))

    def client_address(self, peer: str, headers: routing.Headers) -> str:
        if not self.is_trusted(peer):
            return peer
        nearest = peer
        for text in reversed(b",".join(headers.all(FORWARDED_FIELD)).decode("latin-1").split(",")):
            address = _address(text)
            if address is None:
                return nearest
            nearest = address
            if not self.is_trusted(address):
                return nearest
        return nearest

    def is_trusted(self, address: str) -> bool:
        plain = _address(address)
        return plain is not None and any(ipaddress.ip_address(plain) in network for network in self._networks)


def _address(text: str) -> str | None:
    """An address in canonical form; some proxies include the port."""
    bare = text.strip()
    if bare.startswith("["):
        bare = bare[1:].partition("]")[0]
    elif bare.count(":") == 1:
        bare = bare.partition(":")[0]
    try:
        # A zone ("%eth0") can be any text, and is meaningless outside one host.
        address = ipaddress.ip_address(bare) if "%" not in bare else None
    except ValueError:
        return None
    if address is None:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(mapped or address)
