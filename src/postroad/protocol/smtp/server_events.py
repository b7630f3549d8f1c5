"""What the server's side of a session is told, what it knows, and what it asks: features, a session, and events."""

from dataclasses import dataclass
from typing import Final

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


@dataclass(frozen=True, slots=True)
class Features:
    """What a server offers, and how much it takes. AUTH is offered under TLS alone, unless told otherwise."""

    name: str
    message_octets: int
    recipients: int = 100  # what RFC 5321 section 4.5.3.1.8 asks for
    bad_commands: int = 20  # more than a confused client makes, and too few to guess anything
    starttls: bool = False
    auth: bool = False
    auth_without_tls: bool = False

    def offers_auth(self, session: Session) -> bool:
        """Whether this client may authenticate now."""
        return self.auth and (session.is_secure or self.auth_without_tls)

    def extensions(self, session: Session) -> list[str]:
        """What EHLO tells this client."""
        offered = [*_ALWAYS, f"SIZE {self.message_octets}"]
        if self.starttls and not session.is_secure:
            offered.append("STARTTLS")
        if self.offers_auth(session):
            offered.append(f"AUTH {' '.join(authentication.MECHANISMS)}")
        return offered


@dataclass(frozen=True, slots=True)
class Hello:
    """The client says who it is."""

    name: str


@dataclass(frozen=True, slots=True)
class Authenticate:
    """The client proves who it is."""

    credentials: authentication.Credentials


@dataclass(frozen=True, slots=True)
class Mail:
    """A transaction begins; what was before is void. An empty address is the null sender."""

    path: server_commands.Path


@dataclass(frozen=True, slots=True)
class Recipient:
    """A recipient of the transaction."""

    path: server_commands.Path


@dataclass(frozen=True, slots=True)
class Data:
    """The content is about to come by DATA; 354 asks for it."""


@dataclass(frozen=True, slots=True)
class Message:
    """The transaction is complete; a positive reply takes the responsibility for it (RFC 5321 section 6.1)."""

    envelope: values.Envelope


@dataclass(frozen=True, slots=True)
class StartTls:
    """TLS was agreed on: stop reading, send the output, shake hands, and call `secured`. It is not replied to.

    What is received between this and `secured` has come under TLS: a client may speak before the driver knows of it.
    """


Event = Hello | Authenticate | Mail | Recipient | Data | Message | StartTls
