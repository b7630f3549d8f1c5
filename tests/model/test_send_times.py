"""When a message may be sent and when it expires: the bounds of both, and how they move together."""

import pytest

from postroad import errors
from postroad.model.mail import send_request

SECOND = 1_000_000
DAY = 24 * 60 * 60 * SECOND
NOW = 1_790_000_000 * SECOND


@pytest.mark.parametrize(
    "send_at, expires_in, times",
    [
        (None, None, (None, None)),
        (NOW + DAY, None, (NOW + DAY, None)),
        (NOW + 30 * DAY, None, (NOW + 30 * DAY, None)),
        (None, 60, (None, NOW + 60 * SECOND)),
        (NOW + DAY, 60, (NOW + DAY, NOW + DAY + 60 * SECOND)),
        # A little late: it is sent at once, and has its whole time.
        (NOW - 60 * SECOND, 60, (NOW - 60 * SECOND, NOW + 60 * SECOND)),
    ],
)
def test_times_count_from_acceptance_or_from_the_time_to_send(
    send_at: int | None, expires_in: int | None, times: tuple[int | None, int | None]
) -> None:
    assert send_request.resolve_times(send_at=send_at, expires_in=expires_in, now=NOW) == send_request.SendTimes(*times)


@pytest.mark.parametrize(
    "send_at, message",
    [
        (
            NOW - 60 * SECOND - 1,
            r"send_at: 2026-09-21T14:12:19\.999Z is in the past, it is 2026-09-21T14:13:20\.000Z now; leave it out",
        ),
        (
            NOW + 30 * DAY + 1,
            r"send_at: 2026-10-21T14:13:20\.000Z is more than 30 days ahead; it is 2026-09-21T14:13:20\.000Z now",
        ),
    ],
)
def test_a_time_that_is_over_or_too_far_ahead_is_refused(send_at: int, message: str) -> None:
    with pytest.raises(errors.InvalidRequest, match=message):
        send_request.resolve_times(send_at=send_at, expires_in=None, now=NOW)


@pytest.mark.parametrize("text", ["tomorrow", "2026-01-31", "2026-01-31T12:00:00", "2026-02-30T12:00:00Z", "", "1"])
def test_a_time_without_its_form_or_zone_is_refused(text: str) -> None:
    with pytest.raises(errors.InvalidRequest, match="send_at: "):
        send_request.parse_send_at(text)


@pytest.mark.parametrize("seconds", [59, 0, -60, 432_001])
def test_a_message_lives_for_a_minute_to_five_days(seconds: int) -> None:
    assert [send_request.check_expires_in(one) for one in (60, 432_000)] == [60, 432_000]
    with pytest.raises(errors.InvalidRequest, match=rf"expires_in: {seconds} seconds; it must be 60 to 432000"):
        send_request.check_expires_in(seconds)


def test_the_expiry_moves_with_the_time_to_send() -> None:
    scheduled = send_request.resolve_times(send_at=NOW + DAY, expires_in=90, now=NOW)
    assert send_request.move_times(scheduled, NOW, created_at=NOW) == send_request.SendTimes(NOW, NOW + 90 * SECOND)
    late = send_request.resolve_times(send_at=NOW - SECOND, expires_in=90, now=NOW)
    assert send_request.move_times(late, NOW + DAY, created_at=NOW).expires_at == NOW + DAY + 90 * SECOND
    assert send_request.move_times(send_request.SendTimes(NOW), NOW + 1, created_at=NOW) == send_request.SendTimes(
        NOW + 1
    )
