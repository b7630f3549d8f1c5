"""The filters above the list of messages: a status, live or test mail, and a range of time.

The search is the whole truth, and its text is what a URL keeps. The form sends the text, the text that the filters were
shown for, and the filters: those that are no longer as they were shown change their terms, and the rest of the text
stays as it was typed.
"""

import dataclasses
import datetime as dt
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from postroad import context
from postroad.model.mail import statuses
from postroad.model.search import search_query
from postroad.model.units import times
from postroad.services.messages import lookup

# What `status:` finds, in the words of a menu. A message to two people of whom one bounced is partly delivered, and is
# found by what became of either recipient.
STATUSES: Final = {
    "Whole message": {
        "delivered": "Delivered",
        "queued": "Queued",
        "partial": "Partly delivered",
        "failed": "Not delivered",
    },
    "Any recipient": {
        "deferred": "Deferred",
        "bounced": "Bounced",
        "expired": "Expired",
        "canceled": "Canceled",
        "suppressed": "Suppressed",
        "unsubscribed": "Unsubscribed",
    },
}
StatusGroups = Mapping[str, Mapping[str, str]]
MODES: Final = {"": "Live mail", statuses.Mode.TEST.value: "Test mail"}
CUSTOM: Final = "custom"
# What `after:` finds.
PERIODS: Final = {
    "": "Any time",
    "1h": "Last hour",
    "24h": "Last 24 hours",
    "7d": "Last 7 days",
    "30d": "Last 30 days",
    CUSTOM: "Custom range",
}
# Where a custom range begins that follows "Any time".
CUSTOM_DAYS: Final = 30
# A menu is read at a glance, and nine counts may take no longer than the list.
MAX_COUNTED: Final = 1_000


class SearchQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    search: str | None = None

    @property
    def text(self) -> str:
        return (self.search or "").strip()


class Query(SearchQuery, frozen=True, forbid_unknown_fields=True, rename={"first": "from", "last": "until"}):
    """A page of a search, or the form of the filters, which were shown for the search `was`."""

    cursor: str | None = None
    was: str | None = None
    status: str | None = None
    mode: str | None = None
    period: str | None = None
    first: str | None = None
    last: str | None = None


class Filters(msgspec.Struct, frozen=True):
    """What the fields of the form show; both days are included."""

    status: str
    mode: str
    period: str
    first: str
    last: str


def of_search(query: search_query.Query, *, now: int, zone: dt.tzinfo) -> Filters:
    last = _day_of(now, zone)
    first = last - dt.timedelta(days=CUSTOM_DAYS)
    if query.after is not None:
        first = _day_of(search_query.moment(query.after, now=now, zone=zone), zone)
    if query.before is not None:
        last = _day_of(search_query.moment(query.before, now=now, zone=zone) - 1, zone)
    period = query.after or ""
    if query.before is not None or period not in PERIODS:
        period = CUSTOM
    mode = query.mode if query.mode in MODES else ""
    return Filters(query.status or "", mode or "", period, first.isoformat(), last.isoformat())


def _day_of(moment: int, zone: dt.tzinfo) -> dt.date:
    try:
        return times.local(moment, zone).date()
    except OverflowError:
        # The calendar ends earlier in a zone that is ahead.
        return dt.date.max


def changed_search(asked: Query, *, now: int, zone: dt.tzinfo) -> str:
    """The text of a form with the terms of the filters that were changed."""
    try:
        query = search_query.parse(asked.text)
    except search_query.QueryError:
        return asked.text
    try:
        was = search_query.parse((asked.was or "").strip())
    except search_query.QueryError:
        was = search_query.Query()
    shown = of_search(was, now=now, zone=zone)
    changes = _changed_bounds(asked, shown, today=_day_of(now, zone))
    if (asked.status or "") != shown.status:
        changes["status"] = asked.status or None
    if (asked.mode or "") != shown.mode:
        changes["mode"] = asked.mode or None
    return search_query.format(dataclasses.replace(query, **changes)) if changes else asked.text


def _changed_bounds(asked: Query, shown: Filters, *, today: dt.date) -> dict[str, Any]:
    period = asked.period or ""
    if period != CUSTOM:
        return {} if period == shown.period else {"after": period or None, "before": None}
    changes: dict[str, Any] = {}
    is_new = shown.period != CUSTOM
    if is_new or (asked.first or "") != shown.first:
        first = _day(asked.first)
        changes["after"] = first.isoformat() if first else None
    if is_new or (asked.last or "") != shown.last:
        last = _day(asked.last)
        # What is accepted later today belongs to it.
        changes["before"] = (last + dt.timedelta(days=1)).isoformat() if last and last < today else None
    return changes


def _day(text: str | None) -> dt.date | None:
    try:
        return dt.date.fromisoformat(text or "")
    except ValueError:
        return None


async def counted_statuses(
    ctx: context.Context, account_id: str, query: search_query.Query, *, zone: dt.tzinfo
) -> StatusGroups:
    """The statuses, with the number of messages that the search would find with each."""
    names = [status for group in STATUSES.values() for status in group]
    searches = [lookup.filters_of(ctx, dataclasses.replace(query, status=status), zone=zone) for status in names]
    found = await lookup.count_each(ctx, account_id, searches, examined=MAX_COUNTED)
    counts = dict(zip(names, found, strict=True))
    return {
        label: {status: f"{text}{_in_brackets(counts[status])}" for status, text in group.items()}
        for label, group in STATUSES.items()
    }


def _in_brackets(count: lookup.Count) -> str:
    if count.is_exact:
        return f" ({count.number:,})"
    return f" ({count.number:,}+)" if count.number else ""
