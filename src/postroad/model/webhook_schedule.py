"""When a receiver is told again, and when no more.

A schedule is the seconds from the end of a failed attempt to the next one; there is one attempt more than there are
delays. What a receiver asks for (Retry-After) changes nothing: the schedule is what its owner was promised. Results are
microseconds.
"""

from collections.abc import Sequence
from typing import Final

from postroad.model import times

# Deliveries that failed together do not all come back together.
JITTER: Final = 0.1
# Shorter delays are exact: somebody may be watching, and so little moves nothing apart.
EXACT_BELOW_SECONDS: Final = 60


def attempts(schedule: Sequence[int]) -> int:
    """How many attempts there are in all."""
    return len(schedule) + 1


def delay(schedule: Sequence[int], made: int, *, random_fraction: float) -> int | None:
    """How long to wait after the last of `made` attempts; None when the schedule is over.

    `chance` lies between 0 and 1 and moves a delay by up to a tenth, either way.
    """
    if made < 1:
        raise ValueError("a delay follows an attempt, and none was made")
    if made >= attempts(schedule):
        return None
    seconds = schedule[made - 1]
    if seconds < EXACT_BELOW_SECONDS:
        return seconds * times.SECOND
    return round(seconds * (1 - JITTER + 2 * JITTER * random_fraction) * times.SECOND)
