"""The days of Postmark's filters: `2026-01-31`, or a time of that day. Both ends belong to the range; times are UTC."""

from postroad import errors
from postroad.model.search import search_query
from postroad.model.units import times


def begin(field: str, text: str | None) -> int | None:
    """The first microsecond of a range."""
    return None if text is None else _moment(field, text)


def end(field: str, text: str | None) -> int | None:
    """The microsecond after a range: a day counts as a whole, and so does a second."""
    if text is None:
        return None
    return _moment(field, text) + (times.SECOND if "T" in text.upper() else times.DAY)


def _moment(field: str, text: str) -> int:
    has_zone = text[-1:] in "Zz" or "+" in text or "T" not in text.upper()
    try:
        return search_query.moment(text if has_zone else f"{text}Z", now=0)
    except ValueError:
        raise errors.InvalidRequest(
            f"{field}: must be a date like 2026-11-01 or a time like 2026-11-01T10:00:00"
        ) from None
