"""Throttling of failed logins: per name and network, and per network.

A few failures are free, because people mistype; then one more attempt is allowed per interval. A counter is one number,
the time at which all its failures are forgotten, so it needs no timer and no list. An attempt that is not allowed is
not counted: nobody can extend somebody else's lockout by repeating. A counter that seems to last longer than its free
failures was stored before the clock was set back and is ignored. All times are microseconds.
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
    """The free failures, and how long until one of them is forgotten."""

    free: int
    interval: int


# 5 at once and 1,440 a day: useless for guessing a password of eight characters, a short wait for its owner.
NAME: Final = FailureLimit(free=5, interval=60 * times.SECOND)
# An office or a provider's gateway is one address, so its limit is higher; one password tried on many names stays slow.
NETWORK: Final = FailureLimit(free=100, interval=3 * times.SECOND)


def wait(policy: FailureLimit, *, clear_at: int, now: int) -> int:
    """How long until another attempt is allowed; 0 when it is allowed now."""
    return max(0, _credible(policy, clear_at, now=now) - now - (policy.free - 1) * policy.interval)


def count(policy: FailureLimit, *, clear_at: int, now: int) -> int:
    """The counter after one more failure."""
    return max(_credible(policy, clear_at, now=now), now) + policy.interval


def _credible(policy: FailureLimit, clear_at: int, *, now: int) -> int:
    # Twice the maximum: setting the clock back a little resets no counter.
    return clear_at if clear_at - now <= 2 * policy.free * policy.interval else now


def withdraw(policy: FailureLimit, *, clear_at: int) -> int:
    """The counter as if one failure had not been counted."""
    return clear_at - policy.interval


# Called several times per connection; parsing the address is the expensive part.
@functools.lru_cache(maxsize=4096)
def network_of(address: str) -> str:
    """What counts as one client: an IPv4 address, an IPv6 /64, or the text itself when it is not an address."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.IPv6Network((int(parsed), IPV6_NETWORK_BITS), strict=False))
