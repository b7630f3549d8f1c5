"""What the server's side of a session is told, what it knows, and what it asks: features, a session, and events."""

from dataclasses import dataclass
from typing import Final

import msgspec

from postroad.protocol.smtp import authentication, server_commands, values

_ALWAYS: Final = ("PIPELINING", "8BITMIME", "SMTPUTF8", "ENHANCEDSTATUSCODES", "CHUNKING", "DSN")


@dataclass(slots=True)
class Session:
    """What a server knows of its client."""

    client_address: str
    hello: str = ""
    is_extended: bool = False
    is_secure: bool = False
    is_authenticated: bool = False

    def reset(self) -> None:
        """TLS is in place: what was said before it is void (RFC 3207 section 4.2)."""
        self.hello = ""
        self.is_extended = self.is_authenticated = False
        self.is_secure = True


@dataclass(frozen=True, slots=True)
class Features:
    """What a server offers, and how much it takes. AUTH is offered under TLS alone, unless told otherwise."""

    name: str
    message_octets: int
    recipients: int = 100  # what RFC 5321 section 4.5.3.1.8 asks for
    bad_commands: int = 20  # more than a confused client makes, and too few to guess anything
    bad_logins: int = 5  # somebody who has mistyped a password knows by then
    idle_commands: int = 100  # without a message; many more than a client needs that keeps its connection alive
    starttls: bool = False
    auth: bool = False
    auth_without_tls: bool = False

    def offers_auth(self, session: Session) -> bool:
        """Whether this client may authenticate now."""
        return self.auth and (session.is_secure or self.auth_without_tls)

    def refuse_unoffered_auth(self, session: Session) -> None:
        """Refuse AUTH where it is not offered, or where it has succeeded (RFC 4954 section 4)."""
        if not self.offers_auth(session):
            if self.auth:
                raise server_commands.CommandError(538, "5.7.11", "AUTH needs TLS; use STARTTLS first")
            raise server_commands.CommandError(502, "5.5.1", "AUTH is not offered here")
        if session.is_authenticated:
            raise server_commands.CommandError(503, "5.5.1", "you are authenticated already")

    def extensions(self, session: Session) -> list[str]:
        """What EHLO tells this client."""
        offered = [*_ALWAYS, f"SIZE {self.message_octets}"]
        if self.starttls and not session.is_secure:
            offered.append("STARTTLS")
        if self.offers_auth(session):
            offered.append(f"AUTH {' '.join(authentication.MECHANISMS)}")
        return offered


class Hello(msgspec.Struct, frozen=True):
    """The client says who it is."""

    name: str


class Authenticate(msgspec.Struct, frozen=True):
    """The client proves who it is."""

    credentials: authentication.Credentials


class Mail(msgspec.Struct, frozen=True):
    """A transaction begins; what was before is void. An empty address is the null sender."""

    path: server_commands.Path


class Recipient(msgspec.Struct, frozen=True):
    """A recipient of the transaction."""

    path: server_commands.Path


class Data(msgspec.Struct, frozen=True):
    """The content is about to come by DATA; 354 asks for it."""


class Message(msgspec.Struct, frozen=True):
    """The transaction is complete; a positive reply takes the responsibility for it (RFC 5321 section 6.1)."""

    transaction: values.MailTransaction


class Rejected(msgspec.Struct, frozen=True):
    """An address, a recipient more, a size or a content cannot be taken. `reply` says why, in words to be bettered."""

    verb: str
    reply: values.Reply


class StartTls(msgspec.Struct, frozen=True):
    """TLS was agreed on: stop reading, send the output, shake hands, and call `secured`. It is not replied to.

    What is received between this and `secured` has come under TLS: a client may speak before the driver knows of it.
    """


Event = Hello | Authenticate | Mail | Recipient | Data | Message | Rejected | StartTls
