"""The addresses of the SSRF guard: which ones mail and webhooks must not go to, because they are not public hosts.

Customers and strangers choose where mail and webhooks go, so a name of theirs must not lead into the operator's
networks. The tables have IANA's special-purpose registries (RFC 6890) and everything that is not unicast. They are
explicit because the standard library has another definition of a global address: it includes multicast, site-local
addresses and private addresses embedded in IPv6. The first matching network decides.
"""

import ipaddress
from collections.abc import Iterable
from typing import Final

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
IpNetwork = ipaddress.IPv4Network | ipaddress.IPv6Network

_IPV4: Final = tuple(
    (ipaddress.IPv4Network(network), kind)
    for network, kind in (
        ("0.0.0.0/8", "an address of this host"),  # RFC 1122 section 3.2.1.3; Linux takes 0.0.0.0 for loopback
        ("10.0.0.0/8", "a private address"),  # RFC 1918
        ("100.64.0.0/10", "a provider's internal address"),  # carrier-grade NAT, RFC 6598; clouds use it inside
        ("127.0.0.0/8", "a loopback address"),  # RFC 1122 section 3.2.1.3
        ("169.254.0.0/16", "a link-local address"),  # RFC 3927; where clouds keep their metadata
        ("168.63.129.16/32", "a provider's internal address"),  # Azure's platform, on every virtual machine
        ("172.16.0.0/12", "a private address"),  # RFC 1918
        ("192.0.0.0/24", "a reserved address"),  # RFC 6890 section 2.1
        ("192.0.2.0/24", "a documentation address"),  # RFC 5737
        ("192.88.99.0/24", "a reserved address"),  # relays of 6to4, RFC 7526
        ("192.168.0.0/16", "a private address"),  # RFC 1918
        ("198.18.0.0/15", "a benchmarking address"),  # RFC 2544
        ("198.51.100.0/24", "a documentation address"),  # RFC 5737
        ("203.0.113.0/24", "a documentation address"),  # RFC 5737
        ("224.0.0.0/4", "a multicast address"),  # RFC 5771
        ("255.255.255.255/32", "the broadcast address"),  # RFC 8190
        ("240.0.0.0/4", "a reserved address"),  # RFC 1112 section 4
    )
)
_IPV6: Final = tuple(
    (ipaddress.IPv6Network(network), kind)
    for network, kind in (
        ("::/128", "an address of this host"),  # RFC 4291 section 2.5.2
        ("::1/128", "a loopback address"),  # RFC 4291 section 2.5.3
        ("::/96", "an IPv6 address that embeds an IPv4 address"),  # RFC 4291 section 2.5.5.1
        ("64:ff9b::/96", "an IPv6 address that embeds an IPv4 address"),  # NAT64, RFC 6052
        ("64:ff9b:1::/48", "an IPv6 address that embeds an IPv4 address"),  # NAT64, RFC 8215
        ("2001::/32", "an IPv6 address that embeds an IPv4 address"),  # Teredo, RFC 4380
        ("2001::/23", "a reserved address"),  # benchmarks, ORCHID and other protocols, RFC 2928
        ("2001:db8::/32", "a documentation address"),  # RFC 3849
        ("2002::/16", "an IPv6 address that embeds an IPv4 address"),  # 6to4, RFC 3056
        ("3fff::/20", "a documentation address"),  # RFC 9637
        ("fc00::/7", "a private address"),  # RFC 4193
        ("fe80::/10", "a link-local address"),  # RFC 4291 section 2.5.6
        ("fec0::/10", "a private address"),  # site-local, RFC 3879
        ("ff00::/8", "a multicast address"),  # RFC 4291 section 2.7
    )
)
# All that IANA has handed out for public hosts; the discard prefix 100::/64 and segment ids 5f00::/16 lie outside.
_PUBLIC_IPV6: Final = ipaddress.IPv6Network("2000::/3")


def why_blocked(address: str, *, allowed: Iterable[IpNetwork]) -> str | None:
    """The kind of an address that nothing may be sent to; None when it is public, or in an allowed network."""
    ip = effective(ipaddress.ip_address(address))
    kind = kind_of(ip)
    return None if kind is None or any(ip in network for network in allowed) else kind


def kind_of(address: IpAddress) -> str | None:
    """The kind of a special address; None when it can be a public host."""
    if isinstance(address, ipaddress.IPv4Address):
        return next((kind for network, kind in _IPV4 if address in network), None)
    for network, kind in _IPV6:
        if address in network:
            return kind
    return None if address in _PUBLIC_IPV6 else "a reserved address"


def effective(address: IpAddress) -> IpAddress:
    """The address that a connection would go to: the inner one of an IPv4-mapped address (RFC 4291 section 2.5.5.2)."""
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address
