"""The authenticated caller and its permissions.

The tables below are all permissions: those of each role and of each kind of credential. An API key has scopes: each
route of the API belongs to one of them (`web/routing.py`). A credential of the wrong kind for a route, or a key without
its scope, is `unauthorized`; a user without the permission is `forbidden`.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from postroad.model import key_limits


class Permission(StrEnum):
    """A permission that a route requires."""

    SEND = "send"
    READ = "read"
    VIEW = "view"
    CHANGE = "change"
    MANAGE = "manage"
    # Everything of the installation, whichever account it belongs to.
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
    MEMBER = "member"
    READ_ONLY = "read_only"


EVERYTHING: Final = frozenset(Permission) - {Permission.OPERATE}
ROLE_PERMISSIONS: Final = {
    Role.OWNER: EVERYTHING,
    Role.MEMBER: EVERYTHING - {Permission.MANAGE},
    Role.READ_ONLY: frozenset({Permission.READ, Permission.VIEW}),
}
PASSWORD_PERMISSIONS: Final = frozenset({Permission.SEND, Permission.READ})
# Stands for all scopes of an account, those of later versions too.
EVERY_SCOPE: Final = "*"
SCOPES: Final = frozenset(Scope) - {Scope.OPERATOR}


@dataclass(frozen=True, slots=True)
class ApiKey:
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
