"""The retry schedule of webhook deliveries.

A schedule is the seconds from the end of a failed attempt to the next one; there is one more attempt than there are
delays. Retry-After of an endpoint is ignored: the schedule is documented. Results are microseconds.
"""

from collections.abc import Sequence
from typing import Final

from postroad.model import retry, times

# Shorter delays are exact: somebody may be watching, and so little jitter spreads nothing.
EXACT_BELOW_SECONDS: Final = 60


def attempts(schedule: Sequence[int]) -> int:
    """How many attempts there are in all."""
    return len(schedule) + 1


def delay(schedule: Sequence[int], made: int, *, random_fraction: float) -> int | None:
    """How long to wait after the last of `made` attempts; None when the schedule is over.

    `random_fraction` (0 to 1) adds up to a tenth to a delay.
    """
    if made < 1:
        raise ValueError("a delay follows an attempt, and none was made")
    if made >= attempts(schedule):
        return None
    seconds = schedule[made - 1]
    if seconds < EXACT_BELOW_SECONDS:
        return seconds * times.SECOND
    return round(retry.jittered(seconds, random_fraction) * times.SECOND)
