"""The authenticated caller with its permissions, the limits of an API key, and who acts."""

import ipaddress
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import msgspec

from postroad.model.units import times

# Limits of an API key, and what it has used of them.
#
# Sender domains, templates, recipients a day and the credit budget bind what a key sends; networks and the end date
# bind everything that it does. An empty list and None mean no limit. Days are UTC days. A day that has begun continues
# when a clock is set back, so that its recipients are not granted twice.

# Hosts may see midnight at different moments; a day further ahead was written by a wrong clock.
MAX_DAYS_AHEAD: Final = 1


class KeyLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of a key; names and networks are in normal form."""

    domains: tuple[str, ...] = ()
    networks: tuple[str, ...] = ()
    templates: tuple[str, ...] = ()
    recipients_per_day: int | None = None
    credit_budget: int | None = None
    expires_at: int | None = None
    # Recipients of one request; with more, a person has to approve it.
    approval_above: int | None = None

    @property
    def is_counted(self) -> bool:
        return self.recipients_per_day is not None or self.credit_budget is not None


NO_LIMITS: Final = KeyLimits()


class KeyUsage(msgspec.Struct, frozen=True):
    """What a key has sent: recipients on the last day with mail (days since 1970), and credits in all."""

    day: int = 0
    recipients: int = 0
    credits: int = 0


class KeyBudget(msgspec.Struct, frozen=True):
    """The limits of a key that are counted, and its use of them."""

    recipients_per_day: int | None
    credit_budget: int | None
    usage: KeyUsage


def usage_on_day(usage: KeyUsage, *, now: int) -> KeyUsage:
    """The usage at a time, before anything more is sent."""
    day = times.day_of(now)
    if usage.day - MAX_DAYS_AHEAD <= day <= usage.day:
        return usage
    return KeyUsage(day, 0 if day > usage.day else usage.recipients, usage.credits)


def use_key(usage: KeyUsage, *, recipients: int, credits: int) -> KeyUsage:
    return KeyUsage(usage.day, usage.recipients + recipients, usage.credits + credits)


def permits_address(limits: KeyLimits, client_address: str) -> bool:
    """Whether the key may be used from an address; not from an unknown one, if it has networks."""
    if not limits.networks:
        return True
    try:
        client = ipaddress.ip_address(client_address.partition("%")[0])
    except ValueError:
        return False
    mapped = client.ipv4_mapped if isinstance(client, ipaddress.IPv6Address) else None
    return any((mapped or client) in ipaddress.ip_network(network) for network in limits.networks)


def exceeded_limit(limits: KeyLimits, own: KeyLimits) -> str | None:
    """The first member in which limits permit more than others; None when they permit no more."""
    for member in ("domains", "templates"):
        names, bounds = getattr(limits, member), getattr(own, member)
        if bounds and not (names and set(names) <= set(bounds)):
            return member
    if own.networks and not (limits.networks and all(_is_inside(network, own.networks) for network in limits.networks)):
        return "networks"
    for member in ("recipients_per_day", "credit_budget", "expires_at", "approval_above"):
        amount, bound = getattr(limits, member), getattr(own, member)
        if bound is not None and (amount is None or amount > bound):
            return member
    return None


def _is_inside(network: str, bounds: tuple[str, ...]) -> bool:
    inner = ipaddress.ip_network(network)
    return any(
        outer.version == inner.version and inner.network_address in outer and inner.broadcast_address in outer
        for outer in map(ipaddress.ip_network, bounds)
    )


class Permission(StrEnum):
    """A permission that a route requires; `PERMISSION_TEXTS` says what each is."""

    READ = "read"
    VIEW = "view"
    CONTENT = "content"
    SEND = "send"
    CHANGE = "change"
    MANAGE = "manage"
    OWN = "own"
    OPERATE = "operate"


class Scope(StrEnum):
    """What an API key may be allowed, in the order in which scopes are stored and shown."""

    SEND = "send"
    READ = "read"
    TEMPLATES = "templates"
    SUPPRESSIONS = "suppressions"
    WEBHOOKS = "webhooks"
    DOMAINS = "domains"
    STATISTICS = "statistics"
    TEAM = "team"
    OPERATOR = "operator"


class Scheme(StrEnum):
    """How a caller authenticated."""

    PASSWORD = "password"  # noqa: S105 - the name of a scheme
    API_KEY = "api_key"
    TOKEN = "token"  # noqa: S105 - the name of a scheme


class Role(StrEnum):
    """The role of a user in an account."""

    OWNER = "owner"
    ADMIN = "admin"
    DEVELOPER = "developer"
    ANALYST = "analyst"
    READ_ONLY = "read_only"


# Everything in an account.
EVERYTHING: Final = frozenset(Permission) - {Permission.OPERATE}
ROLE_PERMISSIONS: Final = {
    Role.OWNER: EVERYTHING,
    Role.ADMIN: EVERYTHING - {Permission.OWN},
    Role.DEVELOPER: EVERYTHING - {Permission.OWN, Permission.MANAGE},
    Role.ANALYST: frozenset({Permission.READ, Permission.VIEW}),
    Role.READ_ONLY: frozenset({Permission.READ, Permission.VIEW, Permission.CONTENT}),
}
# Of an operator of the installation, in addition to those of the role in their own account.
OPERATOR_PERMISSIONS: Final = frozenset({Permission.OPERATE})
PASSWORD_PERMISSIONS: Final = frozenset({Permission.SEND, Permission.READ})
PERMISSION_TEXTS: Final = {
    Permission.READ: "Read the status of a message by its id",
    Permission.VIEW: "See lists, statistics, statuses, recipient addresses, tags, settings, the team, the audit "
    "log and usage, and export them; use their own profile",
    Permission.CONTENT: "See content: subjects, bodies, attachments, header fields, metadata, templates, webhook "
    "payloads and the inbox of the simulator; search it and export it",
    Permission.SEND: "Send, reschedule and cancel messages",
    Permission.CHANGE: "Change domains, templates, suppressions, webhooks, SMTP credentials, API keys and saved views; "
    "retry and resend messages; decide on approvals",
    Permission.MANAGE: "Invite, change, disable and remove users who are not owners; create API keys with the "
    "scope team or *",
    Permission.OWN: "Add, change, disable and remove owners; decide how users of the account log in",
    Permission.OPERATE: "Operate the installation: all accounts, their limits and closing, the queue, "
    "providers and operators",
}
ROLE_TEXTS: Final = {
    Role.OWNER: ("Owner", "Everything in the account."),
    Role.ADMIN: ("Admin", "Everything except managing owners and how users log in."),
    Role.DEVELOPER: ("Developer", "Send mail, and change everything except the team."),
    Role.ANALYST: ("Analyst", "See lists, statistics and statuses with recipient addresses, but no content."),
    Role.READ_ONLY: ("Read only", "See everything, including the content of messages. No changes."),
}
# Stands for all scopes of an account, those of later versions too.
EVERY_SCOPE: Final = "*"
SCOPES: Final = frozenset(Scope) - {Scope.OPERATOR}


class ApiKey(msgspec.Struct, frozen=True):
    """The API key that a caller presented."""

    id: str
    name: str
    scopes: frozenset[Scope]
    limits: KeyLimits = NO_LIMITS


def scopes_of(words: str) -> frozenset[Scope]:
    """The scopes that stored words stand for; others give nothing."""
    found = words.split()
    named = frozenset(scope for scope in Scope if scope.value in found)
    return SCOPES | named if EVERY_SCOPE in found else named


@dataclass(frozen=True, slots=True)
class Caller:
    """An authenticated caller. `credential_id` is the scope of its idempotency keys."""

    account_id: str
    credential_id: str | None
    scheme: Scheme
    permissions: frozenset[Permission]
    user_id: str | None = None
    token_id: str | None = None
    expires_at: int | None = None
    # When the person of a token last proved who they are.
    confirmed_at: int | None = None
    key: ApiKey | None = None
    # What it sends goes to the simulator.
    is_test: bool = False
    # The account's own limit of sends per second, if it has one; the accepting transaction reads it again.
    request_rate: int | None = None

    @property
    def sees_content(self) -> bool:
        """Whether content is shown: to people by their role, to programs by the scope that brought them here."""
        return self.scheme is not Scheme.TOKEN or Permission.CONTENT in self.permissions


class FinishedRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request of a caller that was answered. `body` is as it was received, and empty if it was long."""

    id: str
    caller: Caller
    method: str
    path: bytes
    status: int
    code: str
    error: str
    client_address: str
    body_size: int
    body: bytes


# Who acts: a signed-in user, an API key, an operator, or the service itself.
#
# An operator acts at the command line, where nobody logs in, or at the console, where the user is known.
#
# Every context has an actor, so that the audit log of an account can say who did what.


class ActorKind(StrEnum):
    """What kind of actor."""

    PERSON = "person"
    API_KEY = "api_key"
    OPERATOR = "operator"
    SERVICE = "service"


@dataclass(frozen=True, slots=True)
class Actor:
    """Who acts. A request of a user or a key has an id and a client address, and its caller."""

    kind: ActorKind
    user_id: str | None = None
    request_id: str = ""
    client_address: str = ""
    who: Caller | None = None


OPERATOR: Final = Actor(ActorKind.OPERATOR)
SERVICE: Final = Actor(ActorKind.SERVICE)
