"""What was said in a session, for people who ask why a message was refused.

A client collects what passes by as it is, which costs a few list operations; it is written out only for a failure. The
text is bounded however much a server says, and has no content of a message and nothing of a login. Lines of the client
begin with `C:`, those of the server with `S:`, and what happened besides stands in parentheses.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from postroad.protocol.smtp import replies

# Bytes of a command or of several, a reply, or a remark of ours.
Entry = bytes | replies.Received | str

MAX_OCTETS: Final = 4096
# Half of it for how the session began, where the long greetings are; the end has what was refused.
MAX_OPENING_OCTETS: Final = 2048
# A reply may have lines of 2,048.
MAX_LINE_CHARACTERS: Final = 400
AUTHENTICATION: Final = "authentication"
CONTENT: Final = "the message content"
TLS_ESTABLISHED: Final = "TLS established"
WITHHELD: Final = b"(text withheld)"


class Conversation:
    """What was said in a session: how it began, and since the last transaction began."""

    __slots__ = ("_opening", "said")

    def __init__(self) -> None:
        self._opening: list[str] | None = None
        self.said: list[Entry] = []

    def begin_transaction(self) -> None:
        """What was said of the transaction before is no longer kept."""
        if self._opening is None:
            # Bounded now: a session may be idle for long, and what a server says at first may be long too.
            self._opening = _bounded(_lines(self.said), limit=MAX_OPENING_OCTETS)
        self.said.clear()

    def text(self) -> str:
        """The lines, at most MAX_OCTETS of them all."""
        return "\n".join(_bounded([*(self._opening or ()), *_lines(self.said)], limit=MAX_OCTETS))


def _lines(entries: Iterable[Entry]) -> Iterator[str]:
    """The lines of a conversation, each with whose it is."""
    for entry in entries:
        if isinstance(entry, str):
            yield f"({entry})"
        elif isinstance(entry, bytes):
            for command in entry.removesuffix(b"\r\n").split(b"\r\n"):
                yield f"C: {_presentable(command)}"
        else:
            code, texts = entry
            for text in texts[:-1]:
                yield f"S: {code}-{_presentable(text)}"
            yield f"S: {code} {_presentable(texts[-1])}"


def _bounded(said: Iterable[str], *, limit: int) -> list[str]:
    """The lines, without some in the middle if all have more octets than the limit."""
    shown = list(said)
    if _octets(shown) <= limit:
        return shown
    head, tail = _first(shown, limit // 2), _first(reversed(shown), limit // 2)
    return [*head, f"({len(shown) - len(head) - len(tail)} lines left out)", *reversed(tail)]


def _first(said: Iterable[str], limit: int) -> list[str]:
    kept: list[str] = []
    for line in said:
        limit -= _octets([line])
        if limit < 0:
            break
        kept.append(line)
    return kept


def _octets(said: Iterable[str]) -> int:
    return sum(len(line.encode()) + 1 for line in said)


def _presentable(line: bytes) -> str:
    text = replies.presentable(line[: 4 * MAX_LINE_CHARACTERS], unseen="\ufffd")
    return text if len(text) <= MAX_LINE_CHARACTERS else f"{text[:MAX_LINE_CHARACTERS]}…"
