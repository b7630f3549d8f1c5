"""A certificate is renewed with a third of its lifetime left, and after failures with growing delays, up to a day."""

from postroad.model.domains import host_records

HOUR = 3_600_000_000
DAY = 24 * HOUR


def test_a_third_of_the_lifetime_is_left_at_the_renewal() -> None:
    assert host_records.renew_at(issued_at=0, expires_at=90 * DAY) == 60 * DAY
    assert host_records.renew_at(issued_at=DAY, expires_at=7 * DAY) == 5 * DAY


def test_failures_are_followed_by_longer_and_longer_delays() -> None:
    delays = [host_records.retry_at(count, now=DAY) - DAY for count in range(1, 11)]
    quarter = HOUR // 4
    assert delays == [quarter, HOUR // 2, HOUR, 2 * HOUR, 4 * HOUR, 8 * HOUR, 16 * HOUR, DAY, DAY, DAY]
