"""Whether time grows with the size alone: inputs of one word, again and again, and the same twice as long.

Steps do not count what a regular expression does, and short inputs do not show it. So this looks at the processor's
time, and only where it is long enough to be sure: three times the time for twice the size is a finding.
"""

import contextlib
import itertools
import random
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from tests.fuzz import target

OCTETS: Final = 8_000
# Shorter times say nothing.
SECONDS: Final = 0.03
GROWTH: Final = 3.0
BLANKS: Final = (b" ", b"\t", b"\n", b"a", b"\xc3\xbc", b"a ", b" \n")


def find(
    work: target.Work,
    *,
    starts: Sequence[bytes],
    words: Sequence[bytes],
    chance: random.Random,
    until: Callable[[], bool],
) -> Iterator[bytes]:
    """The inputs whose time is not explained by their size."""
    while not until():
        repeated = b"".join(chance.choices((*words, *BLANKS), k=chance.choice((1, 1, 1, 2, 3))))
        start = chance.choice((b"", *starts))
        start = start[: chance.randint(0, len(start))]
        end = chance.choice((b"", *words))
        shorter, longer = (start + repeated * (size // len(repeated)) + end for size in (OCTETS, 2 * OCTETS))
        if _seconds(work, shorter) > SECONDS and _grows(work, shorter, longer):
            yield longer


def _grows(work: target.Work, shorter: bytes, longer: bytes) -> bool:
    """Twice over, because others use the processor too."""
    pairs = itertools.repeat((shorter, longer), 2)
    return all(_seconds(work, twice) > GROWTH * _seconds(work, once) for once, twice in pairs)


def _seconds(work: target.Work, data: bytes) -> float:
    began = time.process_time()
    # What breaks the target is found by the campaign; here only the time counts.
    with contextlib.suppress(Exception):
        work(data)
    return time.process_time() - began
