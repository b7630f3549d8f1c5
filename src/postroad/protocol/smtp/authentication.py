"""AUTH on the server side: PLAIN (RFC 4616) and LOGIN, from the command to a username and a password.

An exchange takes the client's lines and returns a challenge or the credentials, or raises `CommandError`. A line `*`
cancels it (RFC 4954 section 4).
"""

import base64
import binascii
from dataclasses import dataclass, field
from typing import Final

from postroad.protocol.smtp import server_commands, values

MECHANISMS: Final = ("PLAIN", "LOGIN")
_CHALLENGES: Final = {"PLAIN": ("",), "LOGIN": ("VXNlcm5hbWU6", "UGFzc3dvcmQ6")}  # `Username:` and `Password:`
_PLAIN_PARTS: Final = 3


@dataclass(frozen=True, slots=True)
class Credentials:
    """What a client authenticates with."""

    username: str
    password: str = field(repr=False)


class Exchange:
    """One AUTH command and the lines that belong to it."""

    __slots__ = ("_answers", "_mechanism")

    def __init__(self, mechanism: str) -> None:
        if mechanism not in MECHANISMS:
            raise server_commands.CommandError(
                504, "5.5.4", f"Unrecognized authentication type; use {' or '.join(MECHANISMS)}"
            )
        self._mechanism = mechanism
        self._answers: list[str] = []

    def challenge(self) -> values.Reply:
        """The next challenge."""
        return values.Reply(334, _CHALLENGES[self._mechanism][len(self._answers)])

    def answer(self, line: bytes) -> Credentials | None:
        """Process a line; returns the credentials once they are complete."""
        if line == b"*":
            raise server_commands.CommandError(501, "5.7.0", "Authentication cancelled")
        self._answers.append(_decode(line))
        if len(self._answers) < len(_CHALLENGES[self._mechanism]):
            return None
        if self._mechanism == "LOGIN":
            return Credentials(*self._answers)
        parts = self._answers[0].split("\0")
        if len(parts) != _PLAIN_PARTS:
            raise server_commands.CommandError(
                501, "5.5.2", "Malformed PLAIN response; expected identity, username and password"
            )
        identity, username, password = parts
        if identity not in ("", username):
            raise server_commands.CommandError(
                535, "5.7.8", "Authorization identity must be empty or match the username"
            )
        return Credentials(username, password)


def _decode(line: bytes) -> str:
    try:
        # RFC 4954 section 4: a lone `=` is an empty response.
        return base64.b64decode(b"" if line == b"=" else line, validate=True).decode("utf-8")
    except (binascii.Error, ValueError):
        raise server_commands.CommandError(
            501, "5.5.2", "Cannot decode the response; expected base64 of UTF-8 text"
        ) from None
