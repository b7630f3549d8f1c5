"""When the DNS of a sender domain is checked, and what the DKIM record means for its verification.

A new domain is checked often, because somebody is waiting for it. A domain that DNS verified and whose record is gone
has three days to restore it. A DNS failure changes nothing, and a domain that the operator verified is never changed by
DNS. All times are microseconds.
"""

from enum import StrEnum
from typing import Final

from postroad.model import domain_records, times

MINUTE: Final = 60 * times.SECOND
# How long the record may be missing: a zone that breaks on Friday is repaired on Monday.
GRACE_PERIOD: Final = 72 * times.HOUR
# Check interval of an unverified domain or a new key up to this age; older ones are checked weekly.
UNVERIFIED_CHECK_INTERVALS: Final = ((times.HOUR, 5 * MINUTE), (times.DAY, times.HOUR), (30 * times.DAY, times.DAY))
LONG_UNVERIFIED_CHECK_INTERVAL: Final = 7 * times.DAY
# A failing domain is checked every hour while a repair is likely.
FAILING_CHECK_INTERVAL: Final = times.HOUR
FAILING_CHECK_PERIOD: Final = 30 * times.DAY
# Domains that were added together are not all checked together.
JITTER: Final = 0.1


class Change(StrEnum):
    """The result of a check."""

    NONE = "none"
    VERIFIED = "proven"
    FAILING = "failing"
    RECOVERED = "recovered"
    LOST = "lost"


def change(
    state: domain_records.RecordState, *, verified: bool, by_dns: bool, failing_since: int | None, now: int
) -> Change:
    """What the state of the DKIM record changes for a domain."""
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
    *,
    verified: bool,
    failing_since: int | None,
    created_at: int,
    check_hours: int,
    now: int,
    random_fraction: float,
    rotating_since: int | None = None,
) -> int:
    """When to check again; `random_fraction` (0 to 1) moves it by up to a tenth, either way.

    The record of a new key is awaited like that of a new domain.
    """
    if failing_since is not None and now - failing_since < FAILING_CHECK_PERIOD:
        delay = FAILING_CHECK_INTERVAL
    elif not verified:
        delay = _waiting_interval(now - created_at)
    elif rotating_since is not None:
        delay = min(check_hours * times.HOUR, _waiting_interval(now - rotating_since))
    else:
        delay = check_hours * times.HOUR
    return now + round(delay * (1 - JITTER + 2 * JITTER * random_fraction))


def _waiting_interval(age: int) -> int:
    """The check interval of a record that has been awaited for this long."""
    return next((often for limit, often in UNVERIFIED_CHECK_INTERVALS if age < limit), LONG_UNVERIFIED_CHECK_INTERVAL)
