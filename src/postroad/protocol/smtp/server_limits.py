"""How much a server bears in one session: errors, failed logins, and commands that lead to no message.

Each has an end, so that nobody keeps a server busy with nothing. What leads to no message is counted anew after each
complete message: clients that keep a connection for many messages may ask in between whether it still lives. A
recipient that is named, and a chunk with something in it, are work; but not without end.
"""

from typing import Final

from postroad.protocol.smtp import server_commands, server_events

# RFC 5321 section 4.5.3.1.10: a client may name more recipients than are taken, and is told which were.
MAX_RCPT_COMMANDS: Final = 1000
# A chunk shorter than the longest command (RFC 5321 section 4.5.3.1.4) costs more to announce than it brings.
SMALL_CHUNK_OCTETS: Final = 512
_WORK: Final = frozenset({"RCPT", "BDAT"})


class SessionLimits:
    """What a session has used up. Each function raises `Refused` with 421 when that is too much."""

    __slots__ = ("_errors", "_features", "_idle", "_logins", "_named")

    def __init__(self, features: server_events.Features) -> None:
        self._features = features
        self._errors = 0
        self._logins = 0
        self._idle = 0
        self._named = 0

    def command(self, verb: str) -> None:
        """A command; those that may be work are counted when more is known."""
        if verb not in _WORK:
            self._count_idle_command()

    def recipient(self) -> None:
        """RCPT in its order, whatever the answer."""
        self._named += 1
        if self._named > MAX_RCPT_COMMANDS:
            self._count_idle_command()

    def chunk(self, octets: int) -> None:
        """BDAT, whatever it brings."""
        if octets < SMALL_CHUNK_OCTETS:
            self._count_idle_command()

    def message(self) -> None:
        """A message is complete: whoever comes so far is no idler."""
        self._idle = self._named = 0

    def error(self) -> None:
        """A command, or a content, that breaks the rules."""
        self._errors += 1
        if self._errors > self._features.bad_commands:
            raise server_commands.CommandError(421, "4.7.0", "too many errors")

    def failed_login(self) -> None:
        """An AUTH that was refused, for now or for good; who is slowed down does not wait in the session."""
        self._logins += 1
        if self._logins >= self._features.bad_logins:
            raise server_commands.CommandError(421, "4.7.0", "too many failed logins")

    def _count_idle_command(self) -> None:
        self._idle += 1
        if self._idle > self._features.idle_commands:
            raise server_commands.CommandError(421, "4.7.0", "too many commands without a message")
