"""Values of the server side: what it offers (`Features`), what it knows (`Session`), what it asks a policy (events)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from postroad.protocol.smtp import authentication, server_commands, values

_ALWAYS: Final = ("PIPELINING", "8BITMIME", "SMTPUTF8", "ENHANCEDSTATUSCODES", "CHUNKING", "DSN")


class Session(msgspec.Struct):
    client_address: str
    hello: str = ""
    is_extended: bool = False
    is_secure: bool = False
    is_authenticated: bool = False

    def reset(self) -> None:
        """TLS is established: discard what was learned before it (RFC 3207 section 4.2)."""
        self.hello = ""
        self.is_extended = self.is_authenticated = False
        self.is_secure = True


@dataclass(frozen=True, slots=True)
class Features:
    """What a server offers, and its limits. AUTH is offered under TLS only, unless `auth_without_tls` is set."""

    name: str
    message_octets: int
    recipients: int = 100  # the minimum of RFC 5321 section 4.5.3.1.8
    bad_commands: int = 20  # more than a faulty client makes, too few to guess addresses
    bad_logins: int = 5  # enough for mistyped passwords
    idle_commands: int = 100  # without a message; far more than keep-alive needs
    starttls: bool = False
    auth: bool = False
    auth_without_tls: bool = False
    # The EHLO keywords of DELIVERBY and FUTURERELEASE, whose limits depend on the time; None where neither is offered.
    time_keywords: Callable[[], Sequence[str]] | None = None

    def sender(self, argument: str) -> server_commands.Path:
        """The sender of MAIL, with parameters of what is offered."""
        path = server_commands.sender(argument)
        if self.time_keywords is None and (names := path.parameters.keys() & server_commands.TIME_PARAMETERS):
            raise server_commands.CommandError(555, "5.5.4", f"Parameter not recognized: {min(names)}")
        return path

    def offers_auth(self, session: Session) -> bool:
        return self.auth and (session.is_secure or self.auth_without_tls)

    def refuse_unoffered_auth(self, session: Session) -> None:
        """Refuse AUTH where it is not offered, or where it has succeeded (RFC 4954 section 4)."""
        if not self.offers_auth(session):
            if self.auth:
                raise server_commands.CommandError(
                    538, "5.7.11", "Encryption required for authentication; use STARTTLS first"
                )
            raise server_commands.CommandError(502, "5.5.1", "AUTH not available")
        if session.is_authenticated:
            raise server_commands.CommandError(503, "5.5.1", "Already authenticated")

    def extensions(self, session: Session) -> list[str]:
        offered = [*_ALWAYS, f"SIZE {self.message_octets}"]
        if self.starttls and not session.is_secure:
            offered.append("STARTTLS")
        if self.offers_auth(session):
            offered.append(f"AUTH {' '.join(authentication.MECHANISMS)}")
        if self.time_keywords is not None:
            offered += self.time_keywords()
        return offered


class Hello(msgspec.Struct, frozen=True):
    name: str


class Authenticate(msgspec.Struct, frozen=True):
    credentials: authentication.Credentials


class Mail(msgspec.Struct, frozen=True):
    """MAIL: a transaction begins. An empty address is the null sender."""

    path: server_commands.Path


class Recipient(msgspec.Struct, frozen=True):
    path: server_commands.Path


class Data(msgspec.Struct, frozen=True):
    """DATA: 354 requests the content."""


class Message(msgspec.Struct, frozen=True):
    """The message is complete; a positive reply takes responsibility for it (RFC 5321 section 6.1)."""

    transaction: values.MailTransaction


class LargeContent(msgspec.Struct, frozen=True):
    """A large content is complete. The driver calls `load_content` when there is memory for it, or replies."""


class Rejected(msgspec.Struct, frozen=True):
    """An address, a recipient over the limit, a size or a content is refused; the policy may replace `reply`."""

    verb: str
    reply: values.Reply


class StartTls(msgspec.Struct, frozen=True):
    """STARTTLS was accepted: stop reading, send the output, do the handshake, and call `secured`. It takes no reply.

    Bytes received between this and `secured` were sent under TLS: a client may send before `secured` is called.
    """


Event = Hello | Authenticate | Mail | Recipient | Data | LargeContent | Message | Rejected | StartTls


# Limits of one session: errors, failed logins, and commands that do not lead to a message.
#
# They keep a client from occupying a connection without sending mail. The count of idle commands restarts with each
# complete message, because clients that reuse a connection send NOOP or RSET in between. RCPT, and BDAT with content,
# count as work up to a limit of their own.

# RFC 5321 section 4.5.3.1.10: a client may send more RCPT commands than are accepted.
MAX_RCPT_COMMANDS: Final = 1000
# A chunk shorter than a command line (RFC 5321 section 4.5.3.1.4) costs more to announce than it carries.
SMALL_CHUNK_OCTETS: Final = 512
# Verbs that bring a message closer, with limits of their own.
MESSAGE_VERBS: Final = frozenset({"RCPT", "BDAT"})


class SessionLimits:
    """The counts of one session. Each method raises `CommandError` with 421 when its limit is exceeded."""

    __slots__ = ("_errors", "_features", "_idle", "_logins", "_named")

    def __init__(self, features: Features) -> None:
        self._features = features
        self._errors = 0
        self._logins = 0
        self._idle = 0
        self._named = 0

    def idle_command(self) -> None:
        """Count a command that brings no message closer."""
        self._idle += 1
        if self._idle > self._features.idle_commands:
            raise server_commands.CommandError(421, "4.7.0", "Too many commands without a message")

    def recipient(self) -> None:
        """Count an RCPT in sequence, whatever the reply."""
        self._named += 1
        if self._named > MAX_RCPT_COMMANDS:
            self.idle_command()

    def chunk(self, octets: int) -> None:
        if octets < SMALL_CHUNK_OCTETS:
            self.idle_command()

    def message(self) -> None:
        """A message is complete: restart the count of idle commands."""
        self._idle = self._named = 0

    def error(self) -> None:
        self._errors += 1
        if self._errors > self._features.bad_commands:
            raise server_commands.CommandError(421, "4.7.0", "Too many errors")

    def failed_login(self) -> None:
        """Count a refused AUTH, temporary or permanent; a throttled client must not wait inside the session."""
        self._logins += 1
        if self._logins >= self._features.bad_logins:
            raise server_commands.CommandError(421, "4.7.0", "Too many failed authentication attempts")
