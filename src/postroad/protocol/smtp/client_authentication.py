"""AUTH on the client side: the lines of PLAIN (RFC 4616) or LOGIN, by what the server offers (RFC 4954)."""

import base64
from collections.abc import Iterable
from typing import Final

from postroad.protocol.smtp import authentication

# RFC 4954 section 4: an initial response must not make the command longer than RFC 5321 allows, with its CRLF.
_MAX_COMMAND_OCTETS: Final = 510
_MASK: Final = "***"


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


def masked(text: str, sent: Iterable[bytes]) -> str:
    """A reply without the lines that were sent, in case the server quotes them."""
    for line in sent:
        secret = line.rpartition(b" ")[2].decode("ascii")
        if secret not in authentication.MECHANISMS:
            text = text.replace(secret, _MASK)
    return text


def _encoded(text: str) -> bytes:
    return base64.b64encode(text.encode())
