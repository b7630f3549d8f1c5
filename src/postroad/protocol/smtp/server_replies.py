"""Replies that a server writes (RFC 5321 section 4.2), worded as in the RFCs, with enhanced codes (RFC 2034, RFC 3463).

A text that does not fit on one line becomes a multi-line reply. Every reply is ASCII without control characters, so no
text can forge a second reply.
"""

import functools
import re
import textwrap
from collections.abc import Sequence
from typing import Final

from postroad.protocol.smtp import values

# RFC 5321 section 4.5.3.1.5: 512 octets with code and CRLF; an enhanced code has at most 9 (RFC 3463 section 2).
TEXT_OCTETS: Final = 490

# Commands without effect.
FIXED: Final = {
    "NOOP": values.Reply(250, "OK", "2.0.0"),
    "HELP": values.Reply(214, "See RFC 5321", "2.0.0"),
}
# VRFY and EXPN would disclose addresses (RFC 5321 section 7.3).
NOT_IMPLEMENTED: Final = {
    "VRFY": values.Reply(502, "VRFY command not implemented", "5.5.1"),
    "EXPN": values.Reply(502, "EXPN command not implemented", "5.5.1"),
    "ETRN": values.Reply(502, "ETRN command not implemented", "5.5.1"),
}
UNKNOWN_COMMAND: Final = values.Reply(500, "Syntax error, command unrecognized", "5.5.2")
# A web page can make a browser connect to a mail server; mail clients never send these.
HTTP_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT"})
RESET_DONE: Final = values.Reply(250, "OK", "2.0.0")
READY_FOR_TLS: Final = values.Reply(220, "Ready to start TLS", "2.0.0")
HELLO_REQUIRED: Final = values.Reply(503, "Send EHLO first", "5.5.1")
NO_RECIPIENT: Final = values.Reply(554, "No valid recipients", "5.5.1")
BAD_SEQUENCE: Final = values.Reply(503, "Bad sequence of commands", "5.5.1")
CHUNK_ACCEPTED: Final = values.Reply(250, "Chunk accepted", "2.0.0")
TOO_MANY_RECIPIENTS: Final = values.Reply(
    452, "Too many recipients; send to the others in another transaction", "4.5.3"
)
BARE_CR: Final = values.Reply(550, "Bare CR in the message; end lines with CRLF", "5.6.0")
NO_ROOM: Final = values.Reply(452, "Insufficient system storage; try again later", "4.3.1")
# The rest end the session.
BAD_CHUNK_SIZE: Final = values.Reply(501, "Syntax error: use BDAT <size> [LAST]", "5.5.4")
HTTP_REQUEST_REJECTED: Final = values.Reply(421, "HTTP is not supported; this is an SMTP server", "4.7.0")
INPUT_AFTER_STARTTLS: Final = values.Reply(421, "No input allowed between STARTTLS and the TLS handshake", "4.7.0")

_UNPRINTABLE = re.compile(r"[^ -~]+")


def too_large(limit: int) -> values.Reply:
    """The reply to a message over the limit, whether announced by SIZE or sent."""
    return values.Reply(552, f"Message size exceeds the limit of {limit} octets", "5.3.4")


# Most replies are always the same; each takes about 1 KB.
@functools.lru_cache(maxsize=256)
def encode(reply: values.Reply) -> bytes:
    """A reply; each of its lines repeats the enhanced code (RFC 2034 section 4)."""
    text = reply.text
    if not _is_printable(text):
        text = _UNPRINTABLE.sub("?", text)
    prefix = f"{reply.enhanced} " if reply.enhanced else ""
    if len(text) <= TEXT_OCTETS:
        return f"{reply.code} {prefix}{text}\r\n".encode("ascii")
    return encode_lines(reply.code, [prefix + line for line in textwrap.wrap(text, TEXT_OCTETS)])


def encode_lines(code: int, lines: Sequence[str]) -> bytes:
    """A multi-line reply; all lines but the last have a hyphen after the code."""
    if not _is_printable("".join(lines)):
        lines = [_UNPRINTABLE.sub("?", line) for line in lines]
    *before, last = [line[: TEXT_OCTETS + 10] for line in lines]
    return "".join([*[f"{code}-{line}\r\n" for line in before], f"{code} {last}\r\n"]).encode("ascii")


def _is_printable(text: str) -> bool:
    return text.isascii() and text.isprintable()
