"""AUTH on the server side: PLAIN (RFC 4616) and LOGIN, from the command to a username and a password.

An exchange takes the client's lines and returns a challenge or the credentials, or raises `CommandError`. A line `*`
cancels it (RFC 4954 section 4).
"""

import base64
import binascii
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from postroad.protocol.smtp import server_commands, values

MECHANISMS: Final = ("PLAIN", "LOGIN")
_CHALLENGES: Final = {"PLAIN": ("",), "LOGIN": ("VXNlcm5hbWU6", "UGFzc3dvcmQ6")}  # `Username:` and `Password:`
_PLAIN_PARTS: Final = 3


@dataclass(frozen=True, slots=True)
class Credentials:
    username: str
    password: str = field(repr=False)


class Exchange:
    __slots__ = ("_answers", "_mechanism")

    def __init__(self, mechanism: str) -> None:
        if mechanism not in MECHANISMS:
            raise server_commands.CommandError(
                504, "5.5.4", f"Unrecognized authentication type; use {' or '.join(MECHANISMS)}"
            )
        self._mechanism = mechanism
        self._answers: list[str] = []

    def challenge(self) -> values.Reply:
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


# RFC 4954 section 4: an initial response must not make the command longer than RFC 5321 allows, with its CRLF.
_MAX_COMMAND_OCTETS: Final = 510
_MASK: Final = "***"
# Base64 of six octets or more; by less, nobody guesses the rest.
_RUN: Final = re.compile(r"[A-Za-z0-9+/=]{8,}")


def client_lines(credentials: Credentials, offered: str) -> list[bytes]:
    """The command and the responses to each challenge; none when the server offers neither mechanism."""
    username, password = credentials.username, credentials.password
    mechanisms = offered.upper().split()
    if "PLAIN" in mechanisms:
        response = _encoded(f"\0{username}\0{password}")
        command = b"AUTH PLAIN " + response
        return [command] if len(command) <= _MAX_COMMAND_OCTETS else [b"AUTH PLAIN", response]
    if "LOGIN" in mechanisms:
        return [b"AUTH LOGIN", _encoded(username), _encoded(password)]
    return []


def masked(text: str, sent: Sequence[bytes]) -> str:
    """A reply without what was sent, in case the server quotes it: whole, in part, or decoded."""
    words = [line.rpartition(b" ")[2].decode("ascii") for line in sent]
    secrets = [word for word in words if word not in MECHANISMS]
    if not secrets:
        return text
    password = base64.b64decode(secrets[-1]).decode().rpartition("\0")[2]
    for secret in (*secrets, password):
        text = text.replace(secret, _MASK)
    return _RUN.sub(lambda run: _MASK if any(run[0] in secret for secret in secrets) else run[0], text)


def _encoded(text: str) -> bytes:
    return base64.b64encode(text.encode())
