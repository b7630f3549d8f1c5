"""AUTH on the client side: the lines of PLAIN (RFC 4616) or LOGIN, by what the server offers (RFC 4954)."""

import base64
import re
from collections.abc import Sequence
from typing import Final

from postroad.protocol.smtp import authentication

# RFC 4954 section 4: an initial response must not make the command longer than RFC 5321 allows, with its CRLF.
_MAX_COMMAND_OCTETS: Final = 510
_MASK: Final = "***"
# Base64 of six octets or more; by less, nobody guesses the rest.
_RUN: Final = re.compile(r"[A-Za-z0-9+/=]{8,}")


def lines(credentials: authentication.Credentials, offered: str) -> list[bytes]:
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
    secrets = [word for word in words if word not in authentication.MECHANISMS]
    if not secrets:
        return text
    password = base64.b64decode(secrets[-1]).decode().rpartition("\0")[2]
    for secret in (*secrets, password):
        text = text.replace(secret, _MASK)
    return _RUN.sub(lambda run: _MASK if any(run[0] in secret for secret in secrets) else run[0], text)


def _encoded(text: str) -> bytes:
    return base64.b64encode(text.encode())
