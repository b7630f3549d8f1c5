"""Replies as a server writes them (RFC 5321 section 4.2): one line when it fits, else several with the same code.

Whatever stands in a text, a reply is ASCII without control characters, so that no text can forge a second reply.
"""

import re
import textwrap
from collections.abc import Sequence
from typing import Final

from postroad.protocol.smtp import values

# RFC 5321 section 4.5.3.1.5: 512 octets with the code and the line end; an enhanced code has at most 9 (RFC 3463).
TEXT_OCTETS: Final = 490

# To commands that change nothing.
FIXED: Final = {
    "NOOP": values.Reply(250, "OK", "2.0.0"),
    "HELP": values.Reply(214, "this server follows RFC 5321", "2.0.0"),
}
# To commands that are known and not followed; the first two ask for what is nobody's business.
NOT_IMPLEMENTED: Final = {
    "VRFY": values.Reply(502, "addresses are not looked up", "5.5.1"),
    "EXPN": values.Reply(502, "lists are not shown", "5.5.1"),
    "ETRN": values.Reply(502, "no mail is kept for anybody here", "5.5.1"),
}
UNKNOWN_COMMAND: Final = values.Reply(500, "the command is not known", "5.5.2")
# A browser can be made to speak to a mail server; a mail client never says these.
HTTP_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT"})
RESET_DONE: Final = values.Reply(250, "forgotten", "2.0.0")
READY_FOR_TLS: Final = values.Reply(220, "ready for TLS", "2.0.0")
HELLO_REQUIRED: Final = values.Reply(503, "say EHLO first", "5.5.1")
NO_RECIPIENT: Final = values.Reply(554, "no recipient was accepted", "5.5.1")
TOO_MANY_RECIPIENTS: Final = values.Reply(
    452, "too many recipients; send to the others in another transaction", "4.5.3"
)
BARE_LINE_END: Final = values.Reply(550, "the message has a bare CR or LF; end lines with CR LF", "5.6.0")
# These end the session.
BAD_CHUNK_SIZE: Final = values.Reply(501, "write BDAT and the size of the chunk, and LAST with the last one", "5.5.4")
HTTP_REQUEST_REJECTED: Final = values.Reply(421, "this is a mail server", "4.7.0")
INPUT_AFTER_STARTTLS: Final = values.Reply(421, "nothing may follow STARTTLS before TLS is in place", "4.7.0")

_UNPRINTABLE = re.compile(r"[^ -~]+")


def too_large(limit: int) -> values.Reply:
    """To a message over the limit, announced or sent."""
    return values.Reply(552, f"the message is larger than {limit} octets", "5.3.4")


def encode(reply: values.Reply) -> bytes:
    """A reply with its enhanced code, which each of its lines repeats (RFC 2034 section 4)."""
    text = reply.text
    if not _is_printable(text):
        text = _UNPRINTABLE.sub("?", text)
    prefix = f"{reply.enhanced} " if reply.enhanced else ""
    if len(text) <= TEXT_OCTETS:
        return f"{reply.code} {prefix}{text}\r\n".encode("ascii")
    return encode_lines(reply.code, [prefix + line for line in textwrap.wrap(text, TEXT_OCTETS)])


def encode_lines(code: int, lines: Sequence[str]) -> bytes:
    """A reply of several lines; all but the last have a hyphen after the code."""
    if not _is_printable("".join(lines)):
        lines = [_UNPRINTABLE.sub("?", line) for line in lines]
    *before, last = [line[: TEXT_OCTETS + 10] for line in lines]
    return "".join([*[f"{code}-{line}\r\n" for line in before], f"{code} {last}\r\n"]).encode("ascii")


def _is_printable(text: str) -> bool:
    return text.isascii() and text.isprintable()
