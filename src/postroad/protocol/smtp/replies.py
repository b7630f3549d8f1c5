"""Parser of SMTP replies (RFC 5321 section 4.2): bytes in any portions in, complete replies out.

A server may be broken or hostile, so everything it can make long is bounded, and an invalid reply is an error at once.
Lines that end in a bare LF are accepted; nothing can be smuggled to a client that way. The text of a reply is decoded
only on demand: the text of most replies is never read.
"""

import re
from collections.abc import Iterator
from typing import Final

from postroad.protocol.smtp import values

# RFC 5321 section 4.5.3.1.5 allows 512; some servers put whole paragraphs into a line.
MAX_LINE_OCTETS: Final = 2048
# The longest EHLO replies have some 25 lines.
MAX_LINES: Final = 100
MAX_REPLY_OCTETS: Final = 32 * 1024
# What is kept of a reply. The explanations of the large providers have about 500.
MAX_TEXT_CHARACTERS: Final = 2000

_CODES: Final = {b"%d" % code: code for code in range(200, 600)}
# What may follow a code; nothing, or the end of the line, when there is no text.
_SIGNS: Final = frozenset({b" ", b"-", b"", b"\r"})
_ENHANCED: Final = {digit: re.compile(rf"{digit}\.[0-9]{{1,3}}\.[0-9]{{1,3}}(?= |$)") for digit in (2, 4, 5)}
# Controls, and what breaks lines or turns their direction in a terminal or a page.
_UNSEEN: Final = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]+")


class BadReply(Exception):
    """The input is not a reply, or exceeds a limit; the text says which."""


# A reply as it came: its code, and what follows the code on each line, up to the LF.
Received = tuple[int, tuple[bytes, ...]]


class Reader:
    """Collects bytes and cuts replies out of them."""

    __slots__ = ("_code", "_lines", "_octets", "_rest")

    def __init__(self) -> None:
        self._rest = b""
        self._code = 0
        self._lines: list[bytes] = []
        self._octets = 0

    @property
    def is_empty(self) -> bool:
        """Whether nothing is left of what was read but whole replies."""
        return not (self._rest or self._lines)

    def read(self, data: bytes) -> Iterator[Received]:
        """The replies that are complete with this data; those before a bad one are given before it is raised."""
        *lines, self._rest = ((self._rest + data) if self._rest else data).split(b"\n")
        for line in lines:
            code, sign = _CODES.get(line[:3]), line[3:4]
            if code is None or sign not in _SIGNS or len(line) > MAX_LINE_OCTETS:
                raise _bad(line)
            if sign == b"-" or self._lines:
                self._add(code, line)
                if sign == b"-":
                    continue
                yield code, tuple(self._lines)
                self._lines.clear()
                self._octets = 0
            else:
                yield code, (line[4:],)
        if len(self._rest) > MAX_LINE_OCTETS:
            raise _bad(self._rest)

    def _add(self, code: int, line: bytes) -> None:
        if self._lines and code != self._code:
            raise _bad(line)
        self._code = code
        self._lines.append(line[4:])
        self._octets += len(line)
        if len(self._lines) > MAX_LINES or self._octets > MAX_REPLY_OCTETS:
            raise BadReply("the destination sent a reply that is too long")


def reply(received: Received) -> values.Reply:
    """The reply as people may see it, its enhanced status code (RFC 2034) apart from the text.

    A code of another class than the reply's own is only text. Servers repeat the code on every line; each is taken off.
    """
    code, lines = received
    texts = [presentable(line) for line in lines]
    pattern = _ENHANCED.get(code // 100)
    found = pattern.match(texts[0]) if pattern is not None else None
    enhanced = ""
    if found is not None:
        enhanced = found[0]
        texts = [text.removeprefix(enhanced).lstrip() for text in texts]
    text = texts[0] if len(texts) == 1 else " ".join([text for text in texts if text])
    return values.Reply(code, text[:MAX_TEXT_CHARACTERS], enhanced)


def extensions(received: Received) -> dict[str, str]:
    """The keywords of an EHLO reply (RFC 5321 section 4.1.1.1); its first line is a greeting."""
    offered = {}
    for line in received[1][1:]:
        keyword, _, parameters = line.decode("ascii", "replace").strip().partition(" ")
        if keyword:
            offered[keyword.upper()] = parameters.strip()
    return offered


def _bad(line: bytes) -> BadReply:
    if len(line) > MAX_LINE_OCTETS:
        return BadReply(f"the destination sent a line of more than {MAX_LINE_OCTETS} octets")
    return BadReply(f"the destination sent an invalid reply: {presentable(line[:100])}")


def presentable(line: bytes, *, unseen: str = "") -> str:
    """Octets as people may see them, with something else for what cannot be seen."""
    text = line.decode("utf-8", "replace").strip()
    return text if text.isprintable() else _UNSEEN.sub(unseen, text)
