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
# To the commands that change nothing.
FIXED: Final = {
    "NOOP": values.Reply(250, "OK", "2.0.0"),
    "VRFY": values.Reply(252, "send some mail, and it will be tried", "2.1.5"),
    "EXPN": values.Reply(502, "lists are not shown", "5.5.1"),
    "HELP": values.Reply(214, "this server follows RFC 5321", "2.0.0"),
}
_UNPRINTABLE = re.compile(r"[^ -~]+")


def encode(reply: values.Reply) -> bytes:
    """A reply with its enhanced code, which each of its lines repeats (RFC 2034 section 4)."""
    text = reply.text
    if not (text.isascii() and text.isprintable()):
        text = _UNPRINTABLE.sub("?", text)
    prefix = f"{reply.enhanced} " if reply.enhanced else ""
    if len(text) <= TEXT_OCTETS:
        return f"{reply.code} {prefix}{text}\r\n".encode("ascii")
    return encode_lines(reply.code, [prefix + line for line in textwrap.wrap(text, TEXT_OCTETS)])


def encode_lines(code: int, lines: Sequence[str]) -> bytes:
    """A reply of several lines; all but the last have a hyphen after the code."""
    *before, last = (_UNPRINTABLE.sub("?", line)[: TEXT_OCTETS + 10] for line in lines)
    return "".join([*(f"{code}-{line}\r\n" for line in before), f"{code} {last}\r\n"]).encode("ascii")
