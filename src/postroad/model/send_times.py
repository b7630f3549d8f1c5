"""When a message is sent, and when delivery of it ends (docs/api.md, "Scheduling and expiry").

A sender may give two options: `send_at`, a time up to 30 days ahead, and `expires_in`, seconds that count from there
or, without it, from acceptance. Times are microseconds.
"""

import msgspec

from postroad import errors
from postroad.model import limits, times


class SendTimes(msgspec.Struct, frozen=True):
    """The times of a message, None where the sender gave none: not before `send_at`, not after `expires_at`."""

    send_at: int | None = None
    expires_at: int | None = None

    def begins_at(self, accepted_at: int) -> int:
        """When delivery begins; the expiry counts from here."""
        return max(accepted_at, self.send_at or accepted_at)


UNTIMED = SendTimes()


def parse_send_at(text: str) -> int:
    """The time in the member `send_at`."""
    try:
        return times.parse(text)
    except ValueError as problem:
        raise errors.InvalidRequest(f"send_at: {problem}") from None


def check_expires_in(seconds: int) -> int:
    """The member `expires_in`, if it is within its bounds."""
    if not limits.MIN_EXPIRES_IN_SECONDS <= seconds <= limits.MAX_EXPIRES_IN_SECONDS:
        raise errors.InvalidRequest(
            f"expires_in: {seconds} seconds; it must be {limits.MIN_EXPIRES_IN_SECONDS} to "
            f"{limits.MAX_EXPIRES_IN_SECONDS} (5 days)"
        )
    return seconds


def resolve(*, send_at: int | None, expires_in: int | None, now: int) -> SendTimes:
    """The times of a message that is accepted now. Raises InvalidRequest when `send_at` is out of range."""
    if send_at is not None:
        check_send_at(send_at, now=now)
    held = SendTimes(send_at) if send_at is not None else UNTIMED
    return held if expires_in is None else SendTimes(send_at, held.begins_at(now) + expires_in * times.SECOND)


def check_send_at(send_at: int, *, now: int) -> None:
    """Refuse a time that is over, or too far ahead. The clocks of callers differ a little from ours."""
    if send_at < now - limits.SEND_AT_TOLERANCE_SECONDS * times.SECOND:
        raise errors.InvalidRequest(
            f"send_at: {times.to_wire(send_at)} is in the past, it is {times.to_wire(now)} now; leave it out to send "
            "at once"
        )
    if send_at > now + limits.SEND_AT_DAYS * times.DAY:
        raise errors.InvalidRequest(
            f"send_at: {times.to_wire(send_at)} is more than {limits.SEND_AT_DAYS} days ahead; it is "
            f"{times.to_wire(now)} now"
        )


def move(current: SendTimes, send_at: int, *, created_at: int) -> SendTimes:
    """The times after `send_at` has changed; the expiry keeps its distance from it."""
    if current.expires_at is None:
        return SendTimes(send_at)
    return SendTimes(send_at, current.expires_at + send_at - current.begins_at(created_at))
