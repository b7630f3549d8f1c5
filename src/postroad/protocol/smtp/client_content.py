"""Message content on the wire: CRLF line ends only, and leading dots doubled (RFC 5321 section 4.5.2).

A bare CR or LF is never sent: servers disagree on whether it ends a line, which allows a second message to be smuggled
(RFC 5321 section 2.3.8). Most messages need no change, and checking that costs a few microseconds: removing all CR and
inserting one before each LF gives the same message.
"""

import re
from collections.abc import Sequence
from typing import Final

_BARE: Final = re.compile(rb"\r(?!\n)|(?<!\r)\n")


def transparent(pieces: Sequence[bytes]) -> bytes:
    """The pieces as one, ready to be followed by the final dot (RFC 5321 section 4.5.2)."""
    content = pieces[0] if len(pieces) == 1 else b"".join(pieces)
    if content.replace(b"\r", b"").replace(b"\n", b"\r\n") != content:
        content = _BARE.sub(b"\r\n", content)
    content = content.replace(b"\r\n.", b"\r\n..")
    if content.startswith(b"."):
        content = b"." + content
    return content if content.endswith(b"\r\n") else content + b"\r\n"
