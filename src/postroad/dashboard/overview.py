"""`/`: the overview. It reads counters, so its cost does not depend on the amount of mail."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from postroad.dashboard import attention, requests, welcome
from postroad.model import providers, times
from postroad.model.bounces import disposition
from postroad.services.acceptance import send_test
from postroad.services.accounts import credits, statistics
from postroad.services.accounts import registry as accounts
from postroad.services.messages import lookup as messages
from postroad.services.webhooks import delivery_log, endpoints
from postroad.web import routing

PERIODS: Final = {
    statistics.Period.DAY: "24 hours",
    statistics.Period.WEEK: "7 days",
    statistics.Period.MONTH: "30 days",
}
# Enough to include one that was attempted.
MAX_DELIVERIES: Final = 20
PROVIDERS: Final = {**providers.NAMES, providers.OTHERS: "Others"}
# Room above the suspension line, bounded so that an extreme value does not squeeze the lines together.
METER_HEADROOM: Final = 1.25
METER_MAX_RATIO: Final = 2


class Query(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The period."""

    period: statistics.Period | None = None


@dataclass(frozen=True, slots=True)
class Tile:
    """A figure. `change` compares with the previous period, `tone` says whether it is good; both may be empty."""

    label: str
    figure: str
    detail: str
    change: str = ""
    tone: str = ""


@dataclass(frozen=True, slots=True)
class Chart:
    """Series with name, colour and values."""

    name: str
    series: tuple[tuple[str, str, list[int]], ...]


@dataclass(frozen=True, slots=True)
class Meter:
    """A percentage with its warning and suspension thresholds."""

    name: str
    counted: int
    percent: float
    warn: float
    suspend: float

    def position(self, percent: float) -> float:
        """The position of a percentage, in percent of the width."""
        end = METER_HEADROOM * max(self.suspend, min(self.percent, METER_MAX_RATIO * self.suspend))
        return round(min(100.0, 100 * percent / end), 2)

    @property
    def level(self) -> str:
        """The colour of the meter."""
        if self.percent >= self.suspend:
            return "bad"
        return "warn" if self.percent >= self.warn else "good"


async def show(request: requests.PageRequest) -> routing.Response:
    """The overview of a period."""
    query: Query = request.query
    ctx, account_id = request.ctx, request.account_id
    found = await statistics.overview(ctx, account_id, query.period or statistics.Period.WEEK)
    guard = await accounts.sending(ctx, request.account)
    sender = await send_test.default_sender(ctx, account_id)
    needs_credits = credits.needs_credits(ctx, request.account)
    facts = attention.AlertFacts(
        account=request.account,
        guard=guard,
        sender=sender,
        daily_recipients=_daily_recipients(found),
        needs_credits=needs_credits,
        deliveries=await delivery_log.page(ctx, account_id, limit=MAX_DELIVERIES),
        webhooks=await endpoints.of_account(ctx, account_id),
    )
    has_sent = await _has_sent(request, found)
    return request.page(
        "overview.html",
        found=found,
        periods=PERIODS,
        alerts=attention.alerts(facts),
        sender=sender,
        has_sent=has_sent,
        offers_builtin_endpoint=not has_sent and await welcome.offers_builtin_endpoint(request),
        tiles=_tiles(found, request.account.available if needs_credits else None),
        charts=_charts(found.series),
        days=_days(found),
        seconds=statistics.SHAPES[found.period].hours * 3_600,
        guard=guard,
        meters=_meters(guard),
        names=PROVIDERS,
        min_results=statistics.MIN_RESULTS,
        faults=disposition.FAULT_LABELS,
    )


async def _has_sent(request: requests.PageRequest, found: statistics.Overview) -> bool:
    if found.totals.messages or found.queued:
        return True
    newest = await messages.page(request.ctx, request.account_id, messages.Filters(), limit=1, cursor=None)
    return bool(newest.messages)


def _daily_recipients(found: statistics.Overview) -> float:
    """Recipients a day."""
    shape = statistics.SHAPES[found.period]
    return found.totals.recipients * 24 / (shape.buckets * shape.hours)


def _tiles(found: statistics.Overview, credits_left: int | None) -> list[Tile]:
    now, before = found.totals, found.before
    return [
        Tile("Messages", f"{now.messages:,}", _to(now.recipients), *_growth(now.messages, before.messages)),
        _rate("Delivered", "delivered", now, before),
        _rate("Bounced", "bounced", now, before),
        _rate("Failed", "failed", now, before),
        Tile("Queued", f"{found.queued:,}", "recipient" if found.queued == 1 else "recipients"),
        Tile("Credits", "Unlimited", "mail costs nothing")
        if credits_left is None
        else Tile("Credits left", f"{credits_left:,}", "one per recipient"),
    ]


def _to(recipients: int) -> str:
    return "to 1 recipient" if recipients == 1 else f"to {recipients:,} recipients"


def _growth(now: int, before: int) -> tuple[str, str]:
    """The change in percent, without a tone: more mail is neither good nor bad."""
    if not before or now == before:
        return "", ""
    return f"{100 * (now - before) / before:+,.0f}%".replace("-", "\N{MINUS SIGN}"), ""


def _rate(label: str, name: str, now: statistics.Totals, before: statistics.Totals) -> Tile:
    share, share_before = _share(now, name), _share(before, name)
    count = getattr(now, name)
    detail = f"{count:,} of {_final_count(now):,}"
    if share is None:
        return Tile(label, "\N{EN DASH}", "no results yet")
    figure = f"{share:.1f}%" if 0 < count < _final_count(now) else f"{share:.0f}%"
    points = 0.0 if share_before is None else round(share - share_before, 1)
    if not points:
        return Tile(label, figure, detail)
    tone = "good" if (points > 0) == (name == "delivered") else "bad"
    return Tile(label, figure, detail, f"{points:+.1f} points".replace("-", "\N{MINUS SIGN}"), tone)


def _final_count(totals: statistics.Totals) -> int:
    return totals.delivered + totals.bounced + totals.failed


def _share(totals: statistics.Totals, name: str) -> float | None:
    ended = _final_count(totals)
    count: int = getattr(totals, name)
    return 100 * count / ended if ended else None


def _days(found: statistics.Overview) -> list[str]:
    """The dates of daily buckets, in UTC: local time could show the day before."""
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
        Meter("Unknown addresses", guard.bounces, guard.bounce_percent, guard.warn_percent, guard.suspend_percent),
        Meter(
            "Complaints",
            guard.complaints,
            guard.complaint_percent,
            guard.complaint_warn_percent,
            guard.complaint_suspend_percent,
        ),
    )


ROUTES: Final = (requests.get("/", show, query=Query),)
