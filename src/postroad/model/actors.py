"""Who does something: a person who is logged in, an operator at a command line, or the service by itself.

Every context has one. Doors hand services a context that acts for their caller, so that the journal of an account can
say who did what, and no service has to be told.
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
    """Who acts. A person's request has an id and comes from an address."""

    kind: Kind
    user_id: str | None = None
    request_id: str = ""
    client_address: str = ""


OPERATOR: Final = Actor(Kind.OPERATOR)
SERVICE: Final = Actor(Kind.SERVICE)
