"""Who calls, and what that kind of caller may do.

The table below is the whole of the permissions: a credential kind or a role, and its rights. A credential that is of
the wrong kind for a route is `unauthorized`; a person whose role is too small is `forbidden`.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Permission(StrEnum):
    """A right that a route asks for."""

    SEND = "send"
    READ = "read"
    VIEW = "view"
    CHANGE = "change"
    MANAGE = "manage"


class Scheme(StrEnum):
    """How a caller proved who it is."""

    PASSWORD = "password"  # noqa: S105 - the name of a scheme
    API_KEY = "api_key"
    TOKEN = "token"  # noqa: S105 - the name of a scheme


class Role(StrEnum):
    """What a person is in an account."""

    OWNER = "owner"
    MEMBER = "member"
    READ_ONLY = "read_only"


EVERYTHING: Final = frozenset(Permission)
ROLE_PERMISSIONS: Final = {
    Role.OWNER: EVERYTHING,
    Role.MEMBER: EVERYTHING - {Permission.MANAGE},
    Role.READ_ONLY: frozenset({Permission.READ, Permission.VIEW}),
}
PASSWORD_PERMISSIONS: Final = frozenset({Permission.SEND, Permission.READ})


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
