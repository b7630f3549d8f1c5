"""Mail destinations: host names, address literals and provider queue names."""

import hashlib
import ipaddress
import re
from collections.abc import Collection
from typing import Final

from postroad.model import special_addresses

MAX_QUEUE_NAME_CHARACTERS: Final = 200
# 64 bits: too many to find a collision.
DIGEST_DIGITS: Final = 16

_MAX_NAME_CHARACTERS: Final = 253
# Letters, digits and hyphens, and underscores, which are not allowed but in use. A last label of digits only is an
# address (RFC 3696 section 2).
_HOST_NAME: Final = re.compile(
    r"(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)*(?![0-9]+$)[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
)
_IPV6_TAG: Final = "ipv6:"


def is_host_name(name: str) -> bool:
    """Whether a name, in lower case and without a final dot, can be that of a host."""
    return len(name) <= _MAX_NAME_CHARACTERS and _HOST_NAME.fullmatch(name) is not None


def literal(domain: str) -> special_addresses.IpAddress | None:
    """The address in an address literal, `[192.0.2.1]` or `[IPv6:2001:db8::1]` (RFC 5321 section 4.1.3)."""
    inside = domain[1:-1] if domain.startswith("[") and domain.endswith("]") else ""
    try:
        if inside.lower().startswith(_IPV6_TAG):
            return ipaddress.IPv6Address(inside[len(_IPV6_TAG) :])
        return ipaddress.IPv4Address(inside)
    except ValueError:
        return None


def provider_queue_name(hosts: Collection[str]) -> str:
    """The same name for the same set of mail hosts, and for no other.

    A long name is shortened to the first host, the number of others and a digest of all, so that nobody can join the
    provider queue of somebody else with hosts that are cut off.
    """
    names = sorted(set(hosts))
    name = ",".join(names)
    if len(name) <= MAX_QUEUE_NAME_CHARACTERS:
        return name
    others = f"+{len(names) - 1}#{hashlib.sha256(name.encode()).hexdigest()[:DIGEST_DIGITS]}"
    return names[0][: MAX_QUEUE_NAME_CHARACTERS - len(others)] + others
