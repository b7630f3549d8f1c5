"""Limits of one session: errors, failed logins, and commands that do not lead to a message.

They keep a client from occupying a connection without sending mail. The count of idle commands restarts with each
complete message, because clients that reuse a connection send NOOP or RSET in between. RCPT, and BDAT with content,
count as work up to a limit of their own.
"""

from typing import Final

from postroad.protocol.smtp import server_commands, server_events

# RFC 5321 section 4.5.3.1.10: a client may send more RCPT commands than are accepted.
MAX_RCPT_COMMANDS: Final = 1000
# A chunk shorter than a command line (RFC 5321 section 4.5.3.1.4) costs more to announce than it carries.
SMALL_CHUNK_OCTETS: Final = 512
_WORK: Final = frozenset({"RCPT", "BDAT"})


class SessionLimits:
    """The counts of one session. Each method raises `CommandError` with 421 when its limit is exceeded."""

    __slots__ = ("_errors", "_features", "_idle", "_logins", "_named")

    def __init__(self, features: server_events.Features) -> None:
        self._features = features
        self._errors = 0
        self._logins = 0
        self._idle = 0
        self._named = 0

    def command(self, verb: str) -> None:
        """Count a command; RCPT and BDAT are counted by `recipient` and `chunk`."""
        if verb not in _WORK:
            self._count_idle_command()

    def recipient(self) -> None:
        """Count an RCPT in sequence, whatever the reply."""
        self._named += 1
        if self._named > MAX_RCPT_COMMANDS:
            self._count_idle_command()

    def chunk(self, octets: int) -> None:
        """Count a BDAT with this size."""
        if octets < SMALL_CHUNK_OCTETS:
            self._count_idle_command()

    def message(self) -> None:
        """A message is complete: restart the count of idle commands."""
        self._idle = self._named = 0

    def error(self) -> None:
        """Count an invalid command or content."""
        self._errors += 1
        if self._errors > self._features.bad_commands:
            raise server_commands.CommandError(421, "4.7.0", "Too many errors")

    def failed_login(self) -> None:
        """Count a refused AUTH, temporary or permanent; a throttled client must not wait inside the session."""
        self._logins += 1
        if self._logins >= self._features.bad_logins:
            raise server_commands.CommandError(421, "4.7.0", "Too many failed authentication attempts")

    def _count_idle_command(self) -> None:
        self._idle += 1
        if self._idle > self._features.idle_commands:
            raise server_commands.CommandError(421, "4.7.0", "Too many commands without a message")
