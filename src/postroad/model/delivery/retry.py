"""The retry schedule of a recipient: delays, jitter, and the time that a receiving server asks for.

A schedule is the seconds from a failed attempt to the next one. There is one more attempt than there are delays; then
the recipient has expired. A server that names a time is not contacted before it. It can make a delay longer, never
shorter, and by no more than four hours, so that a wrong value there does not hold mail for a week. All results are
microseconds.

Urgent recipients have a schedule of their own, which ends with their time. An attempt that would come too late for a
recipient that expires is made shortly before its end instead.
"""

from collections.abc import Sequence
from typing import Final

from postroad.model.units import times

# Attempts that failed together are not all retried together. Jitter only adds: nothing is retried before its time.
MAX_JITTER: Final = 0.1
# Mail that waits for a corrected setting goes out this soon after it.
MAX_CONFIGURATION_SECONDS: Final = 300
# The longest delay that a server can ask for. Greylisting asks for minutes, hourly limits for an hour.
MAX_RETRY_AFTER_SECONDS: Final = 4 * 60 * 60
# Urgent recipients; the last delay repeats.
URGENT_SECONDS: Final = (5, 10, 20, 30, 60)
# How long before its end a recipient that expires is tried for the last time: a quarter of what is left, and no more
# than this, which is enough for most transactions.
MAX_LAST_SECONDS: Final = 60
# The shortest delay before a last attempt that was moved.
MIN_LAST_DELAY_SECONDS: Final = 5


def delay(schedule: Sequence[int], attempts: int, *, random_fraction: float, retry_after: int | None) -> int | None:
    """How long to wait after the last of `attempts` attempts; None when the schedule is over.

    `random_fraction` (0 to 1) adds up to a tenth to the scheduled delay, or to the `retry_after` seconds that the
    server asks for.
    """
    if attempts < 1:
        raise ValueError("a delay follows an attempt, and none was made")
    if attempts > len(schedule):
        return None
    scheduled = jittered(schedule[attempts - 1], random_fraction)
    if retry_after is None:
        return round(scheduled * times.SECOND)
    requested = min(jittered(retry_after, random_fraction), MAX_RETRY_AFTER_SECONDS)
    return round(max(scheduled, requested) * times.SECOND)


def test_schedule(schedule: Sequence[int]) -> Sequence[int]:
    """The schedule of test mail: as many attempts, a second apart."""
    return (1,) * len(schedule)


def urgent_delay(attempts: int, *, random_fraction: float, retry_after: int | None) -> int:
    """The same for an urgent recipient, whose schedule has no end."""
    place = min(attempts, len(URGENT_SECONDS))
    wait = delay(URGENT_SECONDS, place, random_fraction=random_fraction, retry_after=retry_after)
    assert wait is not None  # noqa: S101 - the place is within the schedule
    return wait


def before_expiry(wait: int, *, left: int, retry_after: int | None) -> int:
    """How long a recipient that expires in `left` waits, whose next attempt would be after `wait`.

    What a server asks for holds. When no time is left for another attempt, the recipient waits until it has expired.
    """
    last = left - min(MAX_LAST_SECONDS * times.SECOND, left // 4)
    if wait <= last:
        return wait
    moved = max(last, min(retry_after or 0, MAX_RETRY_AFTER_SECONDS) * times.SECOND)
    return moved if MIN_LAST_DELAY_SECONDS * times.SECOND <= moved < left else max(wait, left)


def configuration_delay(schedule: Sequence[int], *, random_fraction: float) -> int:
    """How long to wait when this installation has to be corrected: as long as the schedule allows, within bounds."""
    return round(jittered(min(max(schedule), MAX_CONFIGURATION_SECONDS), random_fraction) * times.SECOND)


def jittered(delay: float, random_fraction: float) -> float:
    """A delay and up to a tenth of it more."""
    return delay * (1 + MAX_JITTER * random_fraction)


def lifetime(schedule: Sequence[int]) -> int:
    """After how long a recipient expires that could never be attempted because its destination was blocked.

    It is the longest time that the schedule can take without `retry_after`.
    """
    return round(jittered(sum(schedule), 1) * times.SECOND)
