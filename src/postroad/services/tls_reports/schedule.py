"""When the report of a day is sent: at a random time in the hours after midnight UTC, and again while it fails.

RFC 8460 section 4.1 asks for whole days and for a spread, so that no receiver gets all its reports at once.
"""

from collections.abc import Callable
from typing import Final

from postroad.model import times

# Processes store their counts once a minute. What is not stored by then is not in the report.
LATE: Final = 10 * 60 * times.SECOND
FIRST_REPORT: Final = 15 * 60 * times.SECOND
SPREAD: Final = 4 * times.HOUR
# 22 hours in total (section 5.4 asks for no more than a day); then the report is dropped.
RETRY_DELAYS: Final = (
    15 * 60 * times.SECOND,
    45 * 60 * times.SECOND,
    2 * times.HOUR,
    4 * times.HOUR,
    6 * times.HOUR,
    9 * times.HOUR,
)
_ENTROPY_BYTES: Final = 8


def is_late(day: int, *, now: int) -> bool:
    """Whether results of a day can no longer be added."""
    return now >= (day + 1) * times.DAY + LATE


def due_at(day: int, *, entropy: Callable[[int], bytes]) -> int:
    """When the report of a day is sent."""
    chance = int.from_bytes(entropy(_ENTROPY_BYTES), "big") % SPREAD
    return (day + 1) * times.DAY + FIRST_REPORT + chance


def retry_at(attempt_count: int, *, now: int) -> int | None:
    """When a report is tried again after so many attempts; None after the last one."""
    return now + RETRY_DELAYS[attempt_count - 1] if attempt_count <= len(RETRY_DELAYS) else None
