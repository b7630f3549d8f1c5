"""Forms: protection against cross-site requests, and the dates and times that people type."""

import datetime as dt
import zoneinfo
from typing import Final

import msgspec

from postroad import errors
from postroad.dashboard.framework import site as sites
from postroad.model.units import times
from postroad.web import routing

_SAME_ORIGIN: Final = (b"same-origin", b"none")


class Form(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What every form contains: the CSRF token of the session.

    One with a `question` has not been agreed to: its page asks it, with `verb` on the button (requests.py). Our scripts
    have asked already, and send neither.
    """

    csrf_token: str | None = None
    question: str | None = None
    verb: str | None = None

    def __repr__(self) -> str:
        # A form may contain a password.
        return f"{type(self).__name__}()"


def refuse_cross_origin(site: sites.Site, headers: routing.Headers) -> None:
    came_from = headers.get(b"sec-fetch-site")
    if came_from is not None and came_from not in _SAME_ORIGIN:
        raise _cross_origin()
    origin = headers.get(b"origin")
    # With `Referrer-Policy: no-referrer`, forms are sent with the origin `null` (Fetch standard).
    if origin is None or (origin == b"null" and came_from == b"same-origin"):
        return
    host = (headers.get(b"host") or b"").decode("latin-1").lower()
    if origin.decode("latin-1").lower() not in {sites.origin_of(site.base_url), f"http://{host}", f"https://{host}"}:
        raise _cross_origin()


def missing_csrf_token() -> errors.Forbidden:
    """The error for a form without a valid CSRF token."""
    return errors.Forbidden("this form has expired; reload the page and submit it again")


def _cross_origin() -> errors.Forbidden:
    return errors.Forbidden("cross-site request refused; nothing was changed")


def start_of_day(field: str, text: str | None, zone: zoneinfo.ZoneInfo) -> int:
    """When a day begins; InvalidRequest says what is wrong."""
    return times.moment_of(dt.datetime.combine(day(field, text), dt.time()), zone)


def end_of_day(field: str, text: str | None, zone: zoneinfo.ZoneInfo) -> int:
    try:
        following = day(field, text) + dt.timedelta(days=1)
    except OverflowError:
        raise errors.InvalidRequest(f"{field}: this date is too late") from None
    return times.moment_of(dt.datetime.combine(following, dt.time()), zone)


def moment(field: str, text: str, zone: zoneinfo.ZoneInfo) -> int:
    """The time of `2026-01-31T09:30`; browsers leave out seconds that are zero."""
    try:
        written = dt.datetime.fromisoformat(text)
    except ValueError:
        written = None
    if written is None or written.tzinfo is not None or "T" not in text:
        raise errors.InvalidRequest(f"{field}: write the time as 2026-01-31T09:30, in {zone.key}")
    return times.moment_of(written, zone)


def date_field(moment: int, zone: zoneinfo.ZoneInfo) -> str:
    """A time to the minute, as a date field takes it."""
    return times.local(moment, zone).strftime("%Y-%m-%dT%H:%M")


def day(field: str, text: str | None) -> dt.date:
    if not text:
        raise errors.InvalidRequest(f"{field}: choose a day")
    try:
        return dt.date.fromisoformat(text)
    except ValueError:
        raise errors.InvalidRequest(f"{field}: write the date as 2026-01-31") from None
