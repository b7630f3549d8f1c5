"""When a certificate is renewed: with a third of its lifetime left, and again with growing delays while that fails.

The delays keep clear of the limits of public authorities, such as five failed validations of a name in an hour.
"""

from typing import Final

from postroad.model import times

MINUTE: Final = 60 * times.SECOND
RETRY_DELAYS: Final = (
    15 * MINUTE,
    30 * MINUTE,
    times.HOUR,
    2 * times.HOUR,
    4 * times.HOUR,
    8 * times.HOUR,
    16 * times.HOUR,
    24 * times.HOUR,
)


def renew_at(*, issued_at: int, expires_at: int) -> int:
    """When a certificate is renewed."""
    return expires_at - (expires_at - issued_at) // 3


def retry_at(attempt_count: int, *, now: int) -> int:
    """When the next order is due after so many failures."""
    return now + RETRY_DELAYS[min(attempt_count, len(RETRY_DELAYS)) - 1]
