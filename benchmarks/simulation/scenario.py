"""What a day is like: accounts, mail, destinations and what happens to them, as data (scenarios.toml)."""

import pathlib
import tomllib
import typing

import msgspec

FILE = pathlib.Path(__file__).with_name("scenarios.toml")
DAY_SECONDS = 86_400.0


class Kind(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Destinations of one kind: a mailbox provider, or many domains that behave alike."""

    name: str
    share: float  # of the mail
    mail_host: str  # `{domain}` stands for the domain
    domain: str  # `{number}` stands for its number
    domains: int = 1
    seconds: float = 0.4  # the median of a transaction
    slowest_seconds: float = 0.0  # a tarpit: each transaction takes any time between the two
    unknown: float = 0.0  # the part of addresses that do not exist
    is_silent: bool = False  # connecting times out, always
    greylist_seconds: float = 0.0  # the first attempt of an account is deferred for this long
    # What one sending address may send: messages a second, and how many at once. Beyond it there is `limit_reply`, to
    # everything, for `limit_seconds`.
    rate: float = 0.0
    burst: float = 0.0
    limit_code: int = 421
    limit_enhanced: str = ""
    limit_reply: str = ""
    limit_seconds: float = 60.0
    # The address is blocked when this part of the last thousand recipients did not exist.
    block_share: float = 1.0
    block_code: int = 550
    block_enhanced: str = ""
    block_reply: str = ""
    block_seconds: float = 1800.0


class Outage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Nothing answers at these destinations for a time."""

    kind: str
    begins: float
    seconds: float


class Sender(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An account that sends a lot at a time; a hostile one is no account whose service is counted."""

    name: str
    begins: float
    share: float  # of the messages of the day
    per_second: float
    kind: str = ""  # of destination; any without one
    unknown: float = 0.0  # the part of addresses that do not exist
    is_hostile: bool = False


class Crash(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A host dies, with everything that it has not recorded."""

    host: int
    at: float


class Scenario(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A day."""

    name: str
    about: str
    kinds: tuple[Kind, ...]
    messages: int = 1_000_000
    accounts: int = 2_000
    hosts: int = 1
    seconds: float = DAY_SECONDS  # during which mail is accepted
    drain_seconds: float = DAY_SECONDS / 6  # how long what is left is waited for
    busy: float = 2.0  # the rate of the busiest hour, in times of the mean
    urgent: float = 0.0  # the part of the mail that has ten minutes
    senders: tuple[Sender, ...] = ()
    outages: tuple[Outage, ...] = ()
    crashes: tuple[Crash, ...] = ()
    server_cores: float = 4.0
    # Replies of destinations come at multiples of this many seconds, so that a host records and claims several at a
    # time; 0: when they come.
    tick_seconds: float = 0.05
    look_seconds: float = 0.5  # a host that is woken up looks for mail no more often than this; 0: at once
    providers: dict[str, dict[str, int]] = msgspec.field(default_factory=dict)  # settings of `[providers]`
    delivery: dict[str, int | list[int]] = msgspec.field(default_factory=dict)  # settings of `[delivery]`
    testing: dict[str, int] = msgspec.field(default_factory=dict)  # settings of `[testing]`


def load(path: pathlib.Path = FILE) -> dict[str, Scenario]:
    """The scenarios of the file by name. Each has the kinds of the file, and its own values for the rest."""
    found = tomllib.loads(path.read_text())
    kinds = found.pop("kinds")
    return {name: of(name, values, kinds) for name, values in found.items()}


def of(name: str, values: typing.Mapping[str, typing.Any], kinds: typing.Sequence[typing.Any]) -> Scenario:
    """A scenario of plain values. Outages, senders and crashes have to name what exists."""
    made = msgspec.convert({"name": name, "kinds": kinds, **values}, Scenario)
    known = {kind.name for kind in made.kinds} | {""}
    named = {outage.kind for outage in made.outages} | {sender.kind for sender in made.senders}
    if named - known:
        raise ValueError(f"{name}: there is no kind of destination named {', '.join(sorted(named - known))}")
    if any(not 0 <= crash.host < made.hosts for crash in made.crashes):
        raise ValueError(f"{name}: a crash is of a host that does not exist")
    return made
