"""Who acts: a signed-in user, an operator at the command line, or the service itself.

Every context has an actor, so that the audit log of an account can say who did what.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Kind(StrEnum):
    """What kind of actor."""

    PERSON = "person"
    OPERATOR = "operator"
    SERVICE = "service"


@dataclass(frozen=True, slots=True)
class Actor:
    """Who acts. A user's request has an id and a client address."""

    kind: Kind
    user_id: str | None = None
    request_id: str = ""
    client_address: str = ""


OPERATOR: Final = Actor(Kind.OPERATOR)
SERVICE: Final = Actor(Kind.SERVICE)
