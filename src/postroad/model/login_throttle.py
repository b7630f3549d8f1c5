"""How repeated failures to prove who one is are slowed: for a name tried from one network, and for that network.

A few failures are free, because people mistype; then one more attempt is allowed each interval. The state of a counter
is one number, the time at which everything counted is forgotten, so a counter needs no timer and no list. An attempt
that is not allowed is not counted: nobody can lock somebody else out for longer by insisting. So no counter lasts for
longer than its free failures; one that seems to was kept while the clock was set back, and says nothing any more. All
times are microseconds.
"""

import functools
import ipaddress
from dataclasses import dataclass
from typing import Final

from postroad.model import times

# A customer on IPv6 holds a whole /64 (RFC 6177 section 2) and can send each attempt from another address of it.
IPV6_NETWORK_BITS: Final = 64


@dataclass(frozen=True, slots=True)
class FailureLimit:
    """So many failures at once, and how long until one of them is forgotten."""

    free: int
    interval: int


# 5 at once and 1,440 a day: hopeless against a password of eight characters, soon over for a person who remembers it.
NAME: Final = FailureLimit(free=5, interval=60 * times.SECOND)
# An office or a provider's gateway is one address, so it gets room; trying one password on many names stays slow.
NETWORK: Final = FailureLimit(free=100, interval=3 * times.SECOND)


def wait(policy: FailureLimit, *, clear_at: int, now: int) -> int:
    """How long until another attempt is allowed; 0 when it is allowed now."""
    return max(0, _credible(policy, clear_at, now=now) - now - (policy.free - 1) * policy.interval)


def count(policy: FailureLimit, *, clear_at: int, now: int) -> int:
    """The counter after one more failure."""
    return max(_credible(policy, clear_at, now=now), now) + policy.interval


def _credible(policy: FailureLimit, clear_at: int, *, now: int) -> int:
    # Twice as long as it can be: a clock that is set back by a little forgives nobody.
    return clear_at if clear_at - now <= 2 * policy.free * policy.interval else now


def withdraw(policy: FailureLimit, *, clear_at: int) -> int:
    """The counter as if one failure had not been counted."""
    return clear_at - policy.interval


# Asked several times for every connection; parsing an address takes longer than anything else about it.
@functools.lru_cache(maxsize=4096)
def network_of(address: str) -> str:
    """What is counted as one client: an IPv4 address, an IPv6 /64, or the text itself when it is no address."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.IPv6Network((int(parsed), IPV6_NETWORK_BITS), strict=False))
