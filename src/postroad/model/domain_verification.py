"""When DNS is asked about a sender domain, and what its word about the key means for the proof.

A young domain is asked often, because somebody is waiting for it; an old one seldom. Whoever proved a domain by DNS and
takes the key away has three days to put it back. A question without an answer changes nothing, and neither does DNS
when an operator has vouched. All times are microseconds.
"""

from enum import StrEnum
from typing import Final

from postroad.model import domain_records, times

MINUTE: Final = 60 * times.SECOND
# How long a key may be missing: a zone that was moved or restored wrongly on a Friday is repaired on Monday.
GRACE_PERIOD: Final = 72 * times.HOUR
# Up to which age an unproven domain is asked how often; after the last, once a week.
UNVERIFIED_CHECK_INTERVALS: Final = ((times.HOUR, 5 * MINUTE), (times.DAY, times.HOUR), (30 * times.DAY, times.DAY))
LONG_UNVERIFIED_CHECK_INTERVAL: Final = 7 * times.DAY
# One that was proven and fails is asked every hour, for as long as somebody may still repair it.
FAILING_CHECK_INTERVAL: Final = times.HOUR
FAILING_CHECK_PERIOD: Final = 30 * times.DAY
# Domains that were added together are not all asked together.
JITTER: Final = 0.1


class Change(StrEnum):
    """What follows from a check."""

    NONE = "none"
    VERIFIED = "proven"
    FAILING = "failing"
    RECOVERED = "recovered"
    LOST = "lost"


def change(
    state: domain_records.RecordState, *, verified: bool, by_dns: bool, failing_since: int | None, now: int
) -> Change:
    """What DNS's word about the key means for a domain as it stands."""
    is_there = state is domain_records.RecordState.OK
    if state is domain_records.RecordState.UNKNOWN or (verified and not by_dns):
        return Change.NONE
    if not verified:
        return Change.VERIFIED if is_there else Change.NONE
    if is_there:
        return Change.NONE if failing_since is None else Change.RECOVERED
    if failing_since is None:
        return Change.FAILING
    return Change.LOST if now - failing_since >= GRACE_PERIOD else Change.NONE


def next_check(
    *, verified: bool, failing_since: int | None, created_at: int, check_hours: int, now: int, random_fraction: float
) -> int:
    """When to ask again; `chance` lies between 0 and 1 and moves it by up to a tenth, either way."""
    if failing_since is not None and now - failing_since < FAILING_CHECK_PERIOD:
        delay = FAILING_CHECK_INTERVAL
    elif verified:
        delay = check_hours * times.HOUR
    else:
        delay = next(
            (often for age, often in UNVERIFIED_CHECK_INTERVALS if now - created_at < age),
            LONG_UNVERIFIED_CHECK_INTERVAL,
        )
    return now + round(delay * (1 - JITTER + 2 * JITTER * random_fraction))
