"""Who acts: a signed-in user, an API key, an operator, or the service itself.

An operator acts at the command line, where nobody logs in, or at the console, where the user is known.

Every context has an actor, so that the audit log of an account can say who did what.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from postroad.model import caller


class Kind(StrEnum):
    """What kind of actor."""

    PERSON = "person"
    API_KEY = "api_key"
    OPERATOR = "operator"
    SERVICE = "service"


@dataclass(frozen=True, slots=True)
class Actor:
    """Who acts. A request of a user or a key has an id and a client address, and its caller."""

    kind: Kind
    user_id: str | None = None
    request_id: str = ""
    client_address: str = ""
    who: caller.Caller | None = None


OPERATOR: Final = Actor(Kind.OPERATOR)
SERVICE: Final = Actor(Kind.SERVICE)
