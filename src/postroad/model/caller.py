"""The authenticated caller and its permissions.

The tables below are all permissions: those of each role and of each kind of credential. docs/roles.md and the page
`/team/roles` are generated from them, and tests/permissions checks every route, page and command against them. An
API key has scopes: each route of the API belongs to one of them (`web/routing.py`). A credential of the wrong kind for
a route, or a key without its scope, is `unauthorized`; a user without the permission is `forbidden`.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import msgspec

from postroad.model import key_limits


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
    Permission.READ: "Read the state of a message by its id",
    Permission.VIEW: "See lists, statistics, delivery states, recipient addresses, tags, settings, the team, the audit "
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
    Role.ANALYST: ("Analyst", "See lists, statistics and delivery states with recipient addresses, but no content."),
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
    limits: key_limits.Limits = key_limits.NO_LIMITS


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
