"""The first line of a page about health: what is wrong now and since when, or that all is normal.

Pure: alerts are made where their facts are known; here are those that follow from counts, for an account and for the
installation alike. Counts belong to the hour in which mail was accepted.
"""

import datetime as dt
import itertools
import zoneinfo
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal

import msgspec

from postroad.model.delivery import providers
from postroad.model.units import chart_ranges, times
from postroad.storage.mail import mail_counts

# Some deferrals are always there; this many delay mail.
DEFERRING_PERCENT: Final = 25
# With fewer attempts or results a share says little, and with fewer in an hour that of the hour says nothing.
MIN_COUNTED: Final = 20
MIN_IN_HOUR: Final = 5
# So many points less than yesterday are no accident.
FALLEN_POINTS: Final = 5
Kind = Literal["bad", "warn", ""]
_RANKS: Final[Mapping[Kind, int]] = {"bad": 0, "warn": 1, "": 2}


class Alert(msgspec.Struct, frozen=True, kw_only=True):
    """What is wrong, and the page that solves or explains it. Without a kind it is only the next step."""

    kind: Kind
    title: str
    since: int | None = None
    text: str = ""
    path: str
    action: str


class Deferring(msgspec.Struct, frozen=True):
    """A provider that defers `percent` of the attempts since an hour."""

    provider: str
    percent: int
    since: int

    @property
    def title(self) -> str:
        return f"{providers.NAMES[self.provider]} is deferring {self.percent}%"


class Results(msgspec.Struct, frozen=True):
    """How many recipients were delivered, of those with a final result."""

    delivered: int
    ended: int

    @property
    def percent(self) -> float:
        return 100 * self.delivered / self.ended

    @property
    def figure(self) -> str:
        """One decimal, unless it is all or nothing."""
        return f"{self.percent:.1f}%" if 0 < self.delivered < self.ended else f"{self.percent:.0f}%"


class Rate(msgspec.Struct, frozen=True):
    """The results of today, and those of yesterday."""

    today: Results
    yesterday: Results

    @property
    def words(self) -> str:
        """`96.8% delivered today (yesterday 96.3%)`."""
        now = f"{self.today.figure} delivered today" if self.today.ended else "no results yet today"
        return f"{now} (yesterday {self.yesterday.figure})" if self.yesterday.ended else now

    @property
    def has_fallen(self) -> bool:
        if min(self.today.ended, self.yesterday.ended) < MIN_COUNTED:
            return False
        return self.today.percent <= self.yesterday.percent - FALLEN_POINTS


class Verdict(msgspec.Struct, frozen=True):
    """Alerts, the worst first. `is_complete`: nothing is still being checked or counted."""

    alerts: Sequence[Alert]
    rate: Rate
    is_complete: bool = True

    @property
    def problems(self) -> list[Alert]:
        return [alert for alert in self.alerts if alert.kind]

    @property
    def next_steps(self) -> list[Alert]:
        return [alert for alert in self.alerts if not alert.kind]


def compose(alerts: Iterable[Alert], rate: Rate, *, is_complete: bool = True) -> Verdict:
    return Verdict(sorted(alerts, key=lambda alert: _RANKS[alert.kind]), rate, is_complete)


def first_hour(now: int, zone: zoneinfo.ZoneInfo) -> int:
    """The hour in which yesterday began."""
    return _days(now, zone, 2).from_hour


def rate_of(totals: mail_counts.HourlyTotals, *, now: int, zone: zoneinfo.ZoneInfo) -> Rate:
    today, yesterday = _days(now, zone, 1).from_hour, first_hour(now, zone)
    found = {True: [0, 0], False: [0, 0]}
    for row in totals.rows:
        hour = totals.from_hour + row.bucket
        if hour >= yesterday:
            sums = found[hour >= today]
            sums[0] += row.delivered
            sums[1] += row.delivered + row.bounced + row.failed
    return Rate(today=Results(*found[True]), yesterday=Results(*found[False]))


def is_deferring(deferred: int, attempts: int) -> bool:
    """Whether that many deferrals are more than usual."""
    return attempts > 0 and 100 * deferred >= DEFERRING_PERCENT * attempts


def deferring(totals: mail_counts.HourlyTotals, *, now: int) -> Iterator[Deferring]:
    """The named providers that defer much now. Others are many hosts, which have nothing in common."""
    newest_first = sorted(totals.rows, key=lambda row: row.bucket, reverse=True)
    for provider in providers.NAMES:
        hours = (row for row in newest_first if row.provider == provider and row.attempts >= MIN_IN_HOUR)
        run = list(itertools.takewhile(lambda row: is_deferring(row.deferred, row.attempts), hours))
        attempts = sum(row.attempts for row in run)
        if attempts < MIN_COUNTED or totals.from_hour + run[0].bucket < mail_counts.hour_of(now) - 1:
            continue
        percent = round(100 * sum(row.deferred for row in run) / attempts)
        yield Deferring(provider, percent, (totals.from_hour + run[-1].bucket) * times.HOUR)


def fallen(rate: Rate, path: str) -> Iterator[Alert]:
    """That much less is delivered than yesterday."""
    if rate.has_fallen:
        title = f"Only {rate.today.figure} delivered today"
        text = f"Yesterday it was {rate.yesterday.figure}."
        yield Alert(kind="warn", title=title, text=text, path=path, action="See why")


def _days(now: int, zone: zoneinfo.ZoneInfo, count: int) -> chart_ranges.Range:
    """So many days, until today."""
    today = times.local(now, zone).date()
    return chart_ranges.of_days(today - dt.timedelta(days=count - 1), today, now=now, zone=zone)
