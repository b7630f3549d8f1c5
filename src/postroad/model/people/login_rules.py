"""Rules of logging in: throttling of failures, passwords that are guessed first, names of devices, and providers.

Of a provider of single sign-on: how Postroad is registered there, what it publishes, and whom it vouches for.
"""

import functools
import ipaddress
import itertools
import re
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import msgspec

from postroad.model.units import times


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


# Passwords that are guessed first: the most common ones, patterns, and the user's own address.
#
# A common password with a few digits or signs around it, or with signs for letters (`P4ssw0rd!`), is still common. All
# comparisons ignore case.

# What people add to a word: a year and a sign, some digits.
MAX_ADDED: Final = 6
# Shorter words and units are in too many good passwords.
MIN_WORD: Final = 4
MAX_REPEATED: Final = 5
MIN_WALK: Final = 3
MAX_WALK: Final = 26
MAX_BESIDE_WALKS: Final = 3
# What has to be left of a password without the parts of the address.
MIN_OF_ONES_OWN: Final = 6

_LETTERS: Final = str.maketrans("013457@$!", "oieastasi")
_ADDED: Final = re.compile(r"^[\W\d_]+|[\W\d_]+$")
_PART: Final = re.compile(r"[\W_]+")
_ROWS: Final = """
    1234567890 abcdefghijklmnopqrstuvwxyz qwertyuiop asdfghjkl zxcvbnm qwertzuiop yxcvbnm azertyuiop qsdfghjklm wxcvbn
    1qaz 2wsx 3edc 4rfv 5tgb 6yhn 7ujm 8ik 9ol
""".split()
# Along the keyboard and the alphabet, in both directions.
_WALKS: Final = frozenset(
    row[start:end]
    for line in _ROWS
    for row in (line, line[::-1])
    for start, end in itertools.combinations(range(len(row) + 1), 2)
    if end - start >= MIN_WALK
)


def is_common_password(password: str, common: Container[str]) -> bool:
    """Whether the password is in a list of common ones (in lower case), is nearly one of them, or is a pattern."""
    text = password.casefold()
    word = _word(text)
    forms = {text, word, word.translate(_LETTERS), _word(text.translate(_LETTERS))}
    return any(form in common or _is_repeated(form, common) or _is_walk(form) for form in forms)


def is_own_address(password: str, email: str) -> bool:
    """Whether the password is little more than parts of this address."""
    address = email.casefold()
    rest = text = password.casefold()
    parts = [address, *address.split("@"), *_PART.split(address)]
    for part in sorted(parts, key=len, reverse=True):
        if len(part) >= MIN_WORD:
            rest = rest.replace(part, "")
    return rest != text and len(_PART.sub("", rest)) < MIN_OF_ONES_OWN


def _word(text: str) -> str:
    """The text without digits and signs around it, if these are few."""
    word = _ADDED.sub("", text)
    return word if len(word) >= MIN_WORD and len(text) - len(word) <= MAX_ADDED else text


def _is_repeated(text: str, common: Container[str]) -> bool:
    """Whether it is a short unit, or a common password, again and again."""
    if any(text[length:] == text[:-length] for length in range(1, MAX_REPEATED + 1)):
        return True
    return text[: (text + text).find(text, 1)] in common


def _is_walk(text: str) -> bool:
    """Whether it is a walk along the keyboard or the alphabet, with little else."""
    beside = place = 0
    while place < len(text):
        end = min(len(text), place + MAX_WALK)
        while end > place and text[place:end] not in _WALKS:
            end -= 1
        beside += end == place
        place = max(end, place + 1)
    return beside <= MAX_BESIDE_WALKS


# A short name for what sent a request, such as "Firefox on Linux", from its User-Agent.
#
# The text is written by the client: it helps people to recognise their own sessions, and proves nothing.

UNKNOWN_DEVICE: Final = "Unknown device"
DEVICE_CHARACTERS: Final = 60
# The first that matches; browsers name those that they resemble, too.
_BROWSERS: Final = (
    ("Edg/", "Edge"),
    ("EdgA/", "Edge"),
    ("EdgiOS/", "Edge"),
    ("OPR/", "Opera"),
    ("Firefox/", "Firefox"),
    ("FxiOS/", "Firefox"),
    ("Chrome/", "Chrome"),
    ("CriOS/", "Chrome"),
    ("Safari/", "Safari"),
)
_SYSTEMS: Final = (
    ("Android", "Android"),
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Windows", "Windows"),
    ("Mac OS X", "macOS"),
    ("CrOS", "ChromeOS"),
    ("Linux", "Linux"),
)
# The first product of RFC 9110, section 10.1.5, of programs: "curl/8.5.0".
_PRODUCT: Final = re.compile(r"[A-Za-z0-9!#$&^_.+-]{1,40}(?:/[A-Za-z0-9._+-]{1,20})?")


def device_name(user_agent: str) -> str:
    """The browser and the system, or the program; never longer than a line."""
    system = next((name for mark, name in _SYSTEMS if mark in user_agent), None)
    browser = next((name for mark, name in _BROWSERS if mark in user_agent), None)
    if browser is not None:
        return browser if system is None else f"{browser} on {system}"
    product = _PRODUCT.match(user_agent)
    return UNKNOWN_DEVICE if product is None else product[0][:DEVICE_CHARACTERS]


@dataclass(frozen=True, slots=True)
class Registration:
    """How Postroad is registered at a provider; `is_trusted` for the one that the operator has chosen."""

    issuer: str
    client_id: str
    client_secret: str = field(repr=False)
    is_trusted: bool

    @property
    def cache_key(self) -> str:
        """What is fetched under different rules is kept apart."""
        return f"{self.is_trusted} {self.issuer}"


class Metadata(msgspec.Struct, frozen=True):
    """The discovery document (OpenID Connect Discovery 1.0 section 3, RFC 9207 section 3)."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    end_session_endpoint: str | None = None
    token_endpoint_auth_methods_supported: tuple[str, ...] = ("client_secret_basic",)
    authorization_response_iss_parameter_supported: bool = False


class Person(msgspec.Struct, frozen=True):
    """Whom a provider vouches for. `email` is None unless the provider says that it is verified."""

    issuer: str
    subject: str
    email: str | None
    has_email: bool
    groups: tuple[str, ...]
