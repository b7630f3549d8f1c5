"""Throttling of failed logins: which counters an attempt has, and what each allows.

An attempt counts for its name as tried from its network, for the name as tried from anywhere, and for the network and
the larger ones around it, each with a larger allowance. So neither one guesser with many addresses nor many guessers of
one name get far. A known network, from which the user or the SMTP credential logged in before, counts only the first:
whatever others do, the right person or application there is never slowed for long. Names of SMTP credentials are not
counted from anywhere: their passwords are unguessable, and a stranger must not stop an application.

From an unknown network they count for the networks all the same, because each check costs Argon2. To count only names
that do not exist would need no known networks, but would tell a throttled stranger which names exist: they alone would
still be checked. A known network tells that only to a stranger inside it.

A user's first attempts from a new network, an IPv4 /24 or an IPv6 /48, do not count for the name from anywhere but have
a larger budget of their own (`of_newcomer`): otherwise one guesser who tries each second would take every attempt that
is allowed, and the right person on a journey would not get in. One network gets 48 of them a day, so whoever wants to
use up the budget needs 180 such networks. All unknown networks together guess at one name about 12,000 times a day at
most: 2,880 from anywhere, 8,640 as newcomers, and the free failures.

A few failures are free, because people mistype; then one more attempt is allowed per interval. A counter is one number,
the time at which all its failures are forgotten, so it needs no timer and no list. An attempt that is not allowed is
not counted: nobody can extend somebody else's lockout by repeating. A counter that seems to last longer than its free
failures was stored before the clock was set back and is ignored. All times are microseconds.
"""

import functools
import ipaddress
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

import msgspec

from postroad.model import times


class FailureLimit(msgspec.Struct, frozen=True):
    """The free failures, and how long until one of them is forgotten."""

    free: int
    interval: int


class Counter(NamedTuple):
    """What is counted: a name tried from a network, a name from anywhere, or a network with any name.

    The first attempts of networks are counted apart.
    """

    network: str | None
    name: str | None
    is_newcomer: bool = False


Counters = Mapping[Counter, FailureLimit]

# 5 at once and 1,440 a day: useless for guessing a password of ten characters, a short wait for its owner.
NAME: Final = FailureLimit(free=5, interval=60 * times.SECOND)
# An application's own network: it may have instances with an old password, which must not lock out those with the right
# one, and nobody guesses a generated password.
APPLICATION: Final = FailureLimit(free=100, interval=3 * times.SECOND)
# From all unknown networks together: 2,880 a day, however many hosts guess.
ANYWHERE: Final = FailureLimit(free=50, interval=30 * times.SECOND)
# The first attempts on a name from one /24 or /48: enough to mistype, and then 48 a day.
NEWCOMER: Final = FailureLimit(free=3, interval=30 * 60 * times.SECOND)
# From all such networks together: 8,640 a day.
NEWCOMERS: Final = FailureLimit(free=500, interval=10 * times.SECOND)
# Codes of a second factor: three of a million are right at a time, so 144 a day find one in six years. Whoever tries
# them has the password already.
CODE: Final = FailureLimit(free=10, interval=10 * 60 * times.SECOND)
# Failures of one user in the audit log: enough to see an attack, too few to hide everything else.
AUDITED: Final = FailureLimit(free=10, interval=10 * 60 * times.SECOND)
# Sessions that one login begins, however it is proved: each is a row, and an entry in the audit log. None is forgiven,
# so the whole is short: a clock that is set back by an hour must not keep people out.
SESSIONS: Final = FailureLimit(free=100, interval=6 * times.SECOND)
# By the bits of the network. An office or a provider's gateway is one address, so its limit is higher; one password
# tried on many names stays slow. A customer on IPv6 holds a /64, a /56 or a /48 (RFC 6177 section 2) and can send each
# attempt from another address of it; a hosting customer often holds addresses of one IPv4 /24.
IPV4_NETWORKS: Final = {
    32: FailureLimit(free=100, interval=3 * times.SECOND),
    24: FailureLimit(free=400, interval=times.SECOND * 3 // 4),
}
IPV6_NETWORKS: Final = {
    64: FailureLimit(free=100, interval=3 * times.SECOND),
    56: FailureLimit(free=200, interval=times.SECOND * 3 // 2),
    48: FailureLimit(free=400, interval=times.SECOND * 3 // 4),
}


def of_user(name: str, client_address: str, *, is_known: bool) -> Counters:
    """The counters of a user's login."""
    here = {Counter(network_of(client_address), name): NAME}
    return here if is_known else {**here, Counter(None, name): ANYWHERE, **of_network(client_address)}


def of_newcomer(name: str, client_address: str) -> Counters:
    """The counters of a user's first attempts from a network; those of `of_user` apply when these are used up."""
    largest, _ = _networks(client_address)[-1]
    return {
        Counter(network_of(client_address), name): NAME,
        Counter(largest, name, is_newcomer=True): NEWCOMER,
        Counter(None, name, is_newcomer=True): NEWCOMERS,
        **of_network(client_address),
    }


def of_credential(name: str, client_address: str, *, is_known: bool) -> Counters:
    """The counters of an SMTP credential."""
    here = Counter(network_of(client_address), name)
    return {here: APPLICATION} if is_known else {here: NAME, **of_network(client_address)}


def of_code(login_id: str, client_address: str, *, is_known: bool) -> Counters:
    """The counters of a code of a login. They are not those of its password, whose success clears them.

    All unknown networks have one counter together. A known one has its own, so that whoever has stolen a password does
    not keep its owner out.
    """
    name = f"code {login_id}"
    if is_known:
        return {Counter(network_of(client_address), name): CODE}
    return {Counter(None, name): CODE, **of_network(client_address)}


def of_network(client_address: str) -> Counters:
    """The counters of an attempt without a name."""
    return {Counter(network, None): limit for network, limit in _networks(client_address)}


def of_sessions(login_id: str) -> Counters:
    """The counter of the sessions that a login begins; none of them is forgiven."""
    return {Counter(None, f"sessions {login_id}"): SESSIONS}


def of_audit(user_id: str) -> Counters:
    """The counter of a user's failures that the audit log gets."""
    return {Counter(None, user_id): AUDITED}


def wait(counters: Counters, clear_at: Mapping[Counter, int], *, now: int) -> int:
    """How long until another attempt is allowed; 0 when it is allowed now."""
    waits = (
        _credible(limit, clear_at.get(counter, 0), now=now) - now - (limit.free - 1) * limit.interval
        for counter, limit in counters.items()
    )
    return max(0, *waits)


def count(counters: Counters, clear_at: Mapping[Counter, int], *, now: int) -> dict[Counter, int]:
    """The counters after one more failure."""
    return {
        counter: max(_credible(limit, clear_at.get(counter, 0), now=now), now) + limit.interval
        for counter, limit in counters.items()
    }


def withdraw(counters: Counters, clear_at: Mapping[Counter, int]) -> dict[Counter, int]:
    """The counters as if one failure had not been counted."""
    return {counter: clear_at.get(counter, 0) - limit.interval for counter, limit in counters.items()}


def forgive(counters: Counters, clear_at: Mapping[Counter, int]) -> dict[Counter, int]:
    """The counters after a success: the name has no failures here; elsewhere those of others stay."""
    return {
        counter: 0 if counter.name is not None and counter.network is not None else before
        for counter, before in withdraw(counters, clear_at).items()
    }


def _credible(limit: FailureLimit, clear_at: int, *, now: int) -> int:
    # Twice the maximum: setting the clock back a little resets no counter.
    return clear_at if clear_at - now <= 2 * limit.free * limit.interval else now


# Called several times per connection; parsing the address is the expensive part.
@functools.lru_cache(maxsize=4096)
def network_of(address: str) -> str:
    """What counts as one client: an IPv4 address, an IPv6 /64, or the text itself when it is not an address."""
    return _networks(address)[0][0]


@functools.lru_cache(maxsize=4096)
def networks_around(address: str) -> tuple[tuple[str, int], ...]:
    """The networks around an address, the smallest first, and how many times the allowance of that one each has."""
    networks = _networks(address)
    return tuple((network, limit.free // networks[0][1].free) for network, limit in networks)


def is_near(address: str, networks: Iterable[str]) -> bool:
    """Whether an address is in the neighbourhood of one of these networks, as `network_of` gives them.

    Providers give their customers another address of the same network from time to time.
    """
    around = _networks(address)[-1][0]
    return any(_networks(network.partition("/")[0])[-1][0] == around for network in networks)


@functools.lru_cache(maxsize=4096)
def _networks(address: str) -> tuple[tuple[str, FailureLimit], ...]:
    """The networks around an address with their limits, the smallest first."""
    return tuple(_networks_around(address))


def _networks_around(address: str) -> Iterator[tuple[str, FailureLimit]]:
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        yield address, IPV4_NETWORKS[32]
        return
    if isinstance(parsed, ipaddress.IPv6Address) and parsed.ipv4_mapped is not None:
        parsed = parsed.ipv4_mapped
    if isinstance(parsed, ipaddress.IPv6Address):
        for bits, limit in IPV6_NETWORKS.items():
            yield str(ipaddress.IPv6Network((int(parsed), bits), strict=False)), limit
    else:
        for bits, limit in IPV4_NETWORKS.items():
            network = ipaddress.IPv4Network((int(parsed), bits), strict=False)
            yield str(network).removesuffix("/32"), limit
