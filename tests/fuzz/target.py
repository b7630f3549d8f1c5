"""What a target of the fuzzer is: a name, the code that it watches, inputs to begin with, and what must always hold."""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

Work = Callable[[bytes], None]
Opened = contextlib.AbstractContextManager[Work]

# One octet at a time up to this size; beyond it, so many pieces are still cut in every odd place.
MAX_PIECES: Final = 150


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """`open` gives the work: a function that takes any octets, and raises where something does not hold that must.

    `steps` bounds the lines that an input may run: so many for any input, and so many more for each octet of it. The
    work may do the same thing several times, to compare, and all of it counts.
    """

    name: str
    open: Callable[[], Opened]
    watches: tuple[str, ...]
    seeds: tuple[bytes, ...]
    max_octets: int = 2_000
    steps: tuple[int, int] = (5_000, 200)

    def may_take(self, size: int) -> int:
        """How many lines an input of this size may run."""
        fixed, for_each = self.steps
        return fixed + for_each * size


def plain(work: Work) -> Callable[[], Opened]:
    """A target without anything to open and close."""
    return lambda: contextlib.nullcontext(work)


def pieces(data: bytes) -> list[bytes]:
    """The octets as a slow connection would bring them."""
    size = 1 + len(data) // MAX_PIECES
    return [data[at : at + size] for at in range(0, len(data), size)]


def is_sayable(text: str, *, most: int = 1_500) -> bool:
    """Whether a refusal may be shown to a stranger: it is one line, and does not repeat all that was sent."""
    return text.isprintable() and len(text) <= most


def has_bare_line_ends(content: bytes) -> bool:
    """Whether a CR or an LF stands alone, without asking the code under test."""
    rest = content.replace(b"\r\n", b"")
    return b"\r" in rest or b"\n" in rest
