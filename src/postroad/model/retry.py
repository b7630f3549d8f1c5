"""When a recipient is tried again, and when no more: the schedule, its jitter and what a destination asks for.

A schedule is the seconds from a failed attempt to the next one. There is one attempt more than there are delays; then
the recipient has failed. A destination that names a time is never asked before it. It can make a delay longer, never
shorter, so that the schedule stays the least that is waited; and it cannot hold mail for longer than four hours at a
time, so that a typing mistake there does not park mail for a week here. All results are microseconds.
"""

from collections.abc import Sequence
from typing import Final

from postroad.model import times

# Messages that failed together do not all come back together.
JITTER: Final = 0.1
# The longest wait that a destination can ask for. Greylisting asks for minutes; limits by the hour ask for an hour.
MAX_RETRY_AFTER_SECONDS: Final = 4 * 60 * 60


def delay(schedule: Sequence[int], attempts: int, *, random_fraction: float, retry_after: int | None) -> int | None:
    """How long to wait after the last of `attempts` attempts; None when the schedule is over.

    `chance` lies between 0 and 1 and moves the delay of the schedule by up to a tenth, either way. What the destination
    asks for, `retry_after` seconds, is moved upwards only.
    """
    if attempts < 1:
        raise ValueError("a delay follows an attempt, and none was made")
    if attempts > len(schedule):
        return None
    scheduled = schedule[attempts - 1] * (1 - JITTER + 2 * JITTER * random_fraction)
    if retry_after is None:
        return round(scheduled * times.SECOND)
    requested = min(retry_after * (1 + JITTER * random_fraction), MAX_RETRY_AFTER_SECONDS)
    return round(max(scheduled, requested) * times.SECOND)


def lifetime(schedule: Sequence[int]) -> int:
    """After how long a recipient has failed that could never be tried because its destination was blocked all along.

    It is the longest that a schedule can take when nobody asks for more.
    """
    return round(sum(schedule) * (1 + JITTER) * times.SECOND)
