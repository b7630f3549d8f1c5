"""A report is due in the hours after midnight UTC, at a random time, and is retried for less than a day."""

from postroad.services.operations import tls_reports

SECOND = 1_000_000
HOUR = 3600 * SECOND
MIDNIGHT = 20_001 * 24 * HOUR


def test_a_report_is_due_between_a_quarter_past_midnight_and_four_hours_later() -> None:
    assert tls_reports.due_at(20_000, entropy=bytes) == MIDNIGHT + HOUR // 4
    last = 4 * HOUR - 1
    assert tls_reports.due_at(20_000, entropy=lambda _: last.to_bytes(8, "big")) == MIDNIGHT + HOUR // 4 + last
    assert tls_reports.due_at(20_000, entropy=lambda count: b"\xff" * count) < MIDNIGHT + 5 * HOUR


def test_results_are_late_before_the_first_report_is_due() -> None:
    assert not tls_reports.is_late(20_000, now=MIDNIGHT + 600 * SECOND - 1)
    assert tls_reports.is_late(20_000, now=MIDNIGHT + 600 * SECOND)


def test_a_report_is_retried_six_times_within_a_day() -> None:
    times = [tls_reports.next_try_at(attempts, now=0) for attempts in range(1, 8)]
    assert times[:6] == [HOUR // 4, HOUR * 3 // 4, 2 * HOUR, 4 * HOUR, 6 * HOUR, 9 * HOUR]
    assert times[6] is None
    assert sum(time for time in times if time) == 22 * HOUR
