"""`/`: how the account's mail stands. It comes from what was counted, so much mail takes no longer than little."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from postroad.dashboard import attention, visits, welcome
from postroad.dashboard import site as sites
from postroad.model import judging, times
from postroad.services import accounts, context, messages, statistics, trying_out, webhook_log
from postroad.web import routing

PERIODS: Final = {
    statistics.Period.DAY: "24 hours",
    statistics.Period.WEEK: "7 days",
    statistics.Period.MONTH: "30 days",
}
# Enough to find one that was tried, while new ones come in.
TOLD: Final = 20
PROVIDERS: Final = {
    "google": "Google",
    "microsoft": "Microsoft",
    "yahoo": "Yahoo",
    "apple": "Apple",
    "smarthost": "Smarthost",
    "others": "All others",
}
# What is beyond the last line still has to be seen; what is far beyond it must not push the lines together.
METER_ROOM: Final = 1.25
METER_MOST: Final = 2


class Query(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How far back."""

    period: statistics.Period | None = None


@dataclass(frozen=True, slots=True)
class Tile:
    """A figure. `change` is against the period before, and `tone` says whether that is good; both may be empty."""

    label: str
    figure: str
    detail: str
    change: str = ""
    tone: str = ""


@dataclass(frozen=True, slots=True)
class Chart:
    """Series to draw: a name, a colour and the values of each."""

    name: str
    series: tuple[tuple[str, str, list[int]], ...]


@dataclass(frozen=True, slots=True)
class Meter:
    """A share between nothing and too much, in percent; the places are where it stands on the meter."""

    name: str
    counted: int
    percent: float
    warn: float
    suspend: float

    def place(self, percent: float) -> float:
        """Where a share is drawn, in percent of the width."""
        end = METER_ROOM * max(self.suspend, min(self.percent, METER_MOST * self.suspend))
        return round(min(100.0, 100 * percent / end), 2)

    @property
    def level(self) -> str:
        """How the share stands, as a word."""
        if self.percent >= self.suspend:
            return "bad"
        return "warn" if self.percent >= self.warn else "good"


async def show(visit: visits.Visit) -> routing.Answer:
    """The overview of a period."""
    query: Query = visit.query
    ctx, account_id = visit.ctx, visit.account_id
    found = await statistics.overview(ctx, account_id, query.period or statistics.Period.WEEK)
    guard = await accounts.sending(ctx, visit.account)
    sender = await trying_out.default_sender(ctx, account_id)
    facts = attention.Facts(
        account=visit.account,
        guard=guard,
        cooldown_hours=ctx.settings.bounce_guard.cooldown_hours,
        sender=sender,
        pace=_pace(found),
        told=await webhook_log.page(ctx, account_id, limit=TOLD),
    )
    has_sent = await _has_sent(visit, found)
    return visit.page(
        "overview.html",
        found=found,
        periods=PERIODS,
        matters=attention.matters(facts),
        sender=sender,
        has_sent=has_sent,
        offers_receiver=not has_sent and await welcome.offers_receiver(visit),
        tiles=_tiles(found, visit.account.available),
        charts=_charts(found.series),
        days=_days(found),
        seconds=statistics.SHAPES[found.period].hours * 3_600,
        guard=guard,
        meters=_meters(guard),
        names=PROVIDERS,
        least_results=statistics.LEAST_RESULTS,
        faults=judging.FAULT_WORDS,
    )


async def _has_sent(visit: visits.Visit, found: statistics.Overview) -> bool:
    if found.totals.messages or found.queued:
        return True
    newest = await messages.page(visit.ctx, visit.account_id, messages.Filters(), limit=1, cursor=None)
    return bool(newest.messages)


def _pace(found: statistics.Overview) -> float:
    """Recipients a day."""
    shape = statistics.SHAPES[found.period]
    return found.totals.recipients * 24 / (shape.buckets * shape.hours)


def _tiles(found: statistics.Overview, credits_left: int) -> list[Tile]:
    now, before = found.totals, found.before
    return [
        Tile("Messages", f"{now.messages:,}", _to(now.recipients), *_growth(now.messages, before.messages)),
        _rate("Delivered", "delivered", now, before),
        _rate("Bounced", "bounced", now, before),
        _rate("Failed", "failed", now, before),
        Tile("On their way", f"{found.queued:,}", "recipient" if found.queued == 1 else "recipients"),
        Tile("Credits left", f"{credits_left:,}", "one per recipient"),
    ]


def _to(recipients: int) -> str:
    return "to 1 recipient" if recipients == 1 else f"to {recipients:,} recipients"


def _growth(now: int, before: int) -> tuple[str, str]:
    """By how much there is more; more mail is neither good nor bad."""
    if not before or now == before:
        return "", ""
    return f"{100 * (now - before) / before:+,.0f} %".replace("-", "\N{MINUS SIGN}"), ""


def _rate(label: str, name: str, now: statistics.Totals, before: statistics.Totals) -> Tile:
    share, share_before = _share(now, name), _share(before, name)
    count = getattr(now, name)
    detail = f"{count:,} of {_ended(now):,}"
    if share is None:
        return Tile(label, "\N{EN DASH}", "no results yet")
    figure = f"{share:.1f} %" if 0 < count < _ended(now) else f"{share:.0f} %"
    points = 0.0 if share_before is None else round(share - share_before, 1)
    if not points:
        return Tile(label, figure, detail)
    tone = "good" if (points > 0) == (name == "delivered") else "bad"
    return Tile(label, figure, detail, f"{points:+.1f} points".replace("-", "\N{MINUS SIGN}"), tone)


def _ended(totals: statistics.Totals) -> int:
    return totals.delivered + totals.bounced + totals.failed


def _share(totals: statistics.Totals, name: str) -> float | None:
    ended = _ended(totals)
    count: int = getattr(totals, name)
    return 100 * count / ended if ended else None


def _days(found: statistics.Overview) -> list[str]:
    """The dates of buckets that are days. They are days of UTC: in another time they would begin on the day before."""
    is_daily = statistics.SHAPES[found.period].hours == times.DAY // times.HOUR
    return [times.to_wire(start)[:10] for start in found.series.starts] if is_daily else []


def _charts(series: statistics.Series) -> list[Chart]:
    return [
        Chart("Messages accepted", (("Messages", "accent", series.messages),)),
        Chart(
            "Results",
            (
                ("Delivered", "good", series.delivered),
                ("Bounced", "bad", series.bounced),
                ("Failed", "warn", series.failed),
                ("Deferred", "wait", series.deferred),
            ),
        ),
    ]


def _meters(guard: accounts.Sending) -> Sequence[Meter]:
    if guard.state == "off":
        return ()
    return (
        Meter("No such address", guard.bounces, guard.bounce_percent, guard.warn_percent, guard.suspend_percent),
        Meter(
            "Complaints",
            guard.complaints,
            guard.complaint_percent,
            guard.complaint_warn_percent,
            guard.complaint_suspend_percent,
        ),
    )


def routes(site: sites.Site) -> tuple[routing.Route[context.Context], ...]:
    """The page; there is nothing to change on it."""
    return (visits.look(site, "/", show, query=Query),)
