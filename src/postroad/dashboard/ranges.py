"""The range that a page of counts shows, and the lists of messages that it counts.

A range is a period or days of one's choice, in the time zone of the person. A link leads to the search for the messages
that a number counts: what was accepted in the range, or in one bucket of it.
"""

import datetime as dt
from typing import Final

import msgspec

from postroad.dashboard import requests, typed_times, urls
from postroad.model import chart_ranges, search_query, time_zones, times
from postroad.services.accounts import recipient_sample
from postroad.services.messages import bulk_actions

PERIODS: Final = {
    chart_ranges.Period.DAY: "24 hours",
    chart_ranges.Period.WEEK: "7 days",
    chart_ranges.Period.MONTH: "30 days",
    chart_ranges.Period.QUARTER: "90 days",
}


class RangeQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"first": "from", "last": "until"}):
    """A period, or the first and the last day."""

    period: chart_ranges.Period | None = None
    first: str | None = None
    last: str | None = None


class ShownRange(msgspec.Struct, frozen=True):
    """A range in words, and its links. `period` is None for chosen days, which are `first` and `last`."""

    chosen: chart_ranges.Range
    period: chart_ranges.Period | None
    first: str
    last: str
    now: int
    narrowing: recipient_sample.Narrowing = recipient_sample.ALL_MAIL

    @property
    def words(self) -> str:
        """`last 7 days`, `2026-11-01 to 2026-11-03`."""
        if self.period is not None:
            return f"last {PERIODS[self.period]}"
        return self.first if self.first == self.last else f"{self.first} to {self.last}"

    @property
    def before(self) -> str:
        """What it is compared with."""
        if self.period is not None:
            return f"the previous {PERIODS[self.period]}"
        days = (dt.date.fromisoformat(self.last) - dt.date.fromisoformat(self.first)).days + 1
        return "the day before" if days == 1 else f"the {days} days before"

    def path_of(self, path: str, period: chart_ranges.Period | None = None) -> str:
        """A page of counts with a period; without one, with this range."""
        chosen = period or self.period
        bounds = {"period": chosen.value} if chosen else {"from": self.first, "until": self.last}
        return urls.of(path, **bounds, domain=self.narrowing.domain, tag=self.narrowing.tag)

    def messages(self, *terms: str) -> str:
        """The list of the messages of the range that these terms find."""
        return urls.messages(self._search(terms, self.chosen.from_hour, self.chosen.until_hour))

    def bulk(self, action: bulk_actions.Action, *terms: str) -> str:
        """The confirmation of an action on the same messages."""
        return urls.bulk(action, self._search(terms, self.chosen.from_hour, self.chosen.until_hour))

    def bucket(self, place: int, *terms: str) -> str:
        """The same of one bucket."""
        return urls.messages(self._search(terms, self.chosen.bounds[place], self.chosen.bounds[place + 1]))

    def _search(self, terms: tuple[str, ...], from_hour: int, until_hour: int) -> str:
        tag = search_query.format(search_query.Query(tag=self.narrowing.tag)) if self.narrowing.tag else ""
        domain = f"from:@{self.narrowing.domain}" if self.narrowing.domain else ""
        is_open = until_hour * times.HOUR > self.now
        bounds = (f"after:{_written(from_hour)}", "" if is_open else f"before:{_written(until_hour)}")
        return " ".join(filter(None, (*terms, domain, tag, *bounds)))


def read(
    request: requests.PageRequest,
    query: RangeQuery,
    narrowing: recipient_sample.Narrowing = recipient_sample.ALL_MAIL,
) -> ShownRange:
    """The range that a query asks for; seven days when it says nothing."""
    now, zone = request.ctx.clock(), request.zone
    today = time_zones.local(now, zone).date()
    if query.first or query.last:
        first = typed_times.date("from", query.first)
        last = typed_times.date("until", query.last) if query.last else today
        chosen = chart_ranges.of_days(first, last, now=now, zone=zone)
        return ShownRange(chosen, None, first.isoformat(), last.isoformat(), now, narrowing)
    period = query.period or chart_ranges.Period.WEEK
    chosen = chart_ranges.of_period(period, now=now, zone=zone)
    first = time_zones.local(chosen.starts[0], zone).date()
    return ShownRange(chosen, period, first.isoformat(), today.isoformat(), now, narrowing)


def _written(hour: int) -> str:
    return f"{times.to_wire(hour * times.HOUR)[:16]}Z"
