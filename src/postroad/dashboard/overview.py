"""`/`: the overview, on which every number is a link to the messages that it counts.

It reads counters and bounded samples, so its cost does not depend on the amount of mail.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from postroad import errors
from postroad.dashboard import attention, ranges, requests, urls, welcome
from postroad.model import caller, chart_ranges, labels, limits, providers, search_values
from postroad.model.bounces import disposition
from postroad.protocol import address
from postroad.services.acceptance import send_test
from postroad.services.accounts import credits, recipient_sample, statistics
from postroad.services.accounts import registry as accounts
from postroad.services.domains import registry as domains
from postroad.services.messages import lookup as messages
from postroad.services.webhooks import delivery_log, endpoints
from postroad.web import routing

# The searches for the recipients that are counted.
TERMS: Final = {
    "delivered": "outcome:delivered",
    "bounced": "status:bounced",
    "failed": "outcome:failed OR outcome:expired",
    "deferred": f"outcome:{search_values.RETRIED}",
}
# Enough to include one that was attempted.
MAX_DELIVERIES: Final = 20
PROVIDERS: Final = {**providers.NAMES, providers.OTHERS: "Others"}
# Room above the suspension line, bounded so that an extreme value does not squeeze the lines together.
METER_HEADROOM: Final = 1.25
METER_MAX_RATIO: Final = 2


class Query(ranges.RangeQuery, frozen=True, forbid_unknown_fields=True):
    """The range, and the mail to count: a sender domain, a tag."""

    domain: str | None = None
    tag: str | None = None


class Tile(msgspec.Struct, frozen=True):
    """A figure and the list that it counts. `change` compares with the range before, `tone` says whether it is good."""

    label: str
    figure: str
    detail: str
    path: str
    change: str = ""
    tone: str = ""


class ChartSeries(msgspec.Struct, frozen=True):
    """What a chart counts, in the colour of an outcome; `terms` find the messages."""

    name: str
    color: str
    values: list[int]
    terms: str = ""


class Chart(msgspec.Struct, frozen=True):
    """Series over the buckets of a range; only what adds up is in one chart. `note` says what is counted."""

    name: str
    series: tuple[ChartSeries, ...]
    note: str = ""


class Meter(msgspec.Struct, frozen=True):
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
    """The overview of a range."""
    query: Query = request.query
    ctx, account_id = request.ctx, request.account_id
    narrowing = recipient_sample.Narrowing(_domain(query.domain), _tag(query.tag))
    shown = ranges.read(request, query, narrowing)
    found = await statistics.overview(ctx, account_id, shown.chosen, narrowing)
    guard = await accounts.sending(ctx, request.account)
    sender = await send_test.default_sender(ctx, account_id)
    needs_credits = credits.needs_credits(ctx, request.account)
    has_sent = await _has_sent(request, found)
    registered = await domains.of_account(ctx, account_id)
    can_send_unverified = not ctx.settings.domains.require_verified
    unverified = registered[0] if registered and sender is None else None
    facts = attention.AlertFacts(
        account=request.account,
        guard=guard,
        sender=sender,
        unverified=unverified,
        can_send_unverified=can_send_unverified,
        daily_recipients=await statistics.daily_recipients(ctx, account_id),
        needs_credits=needs_credits,
        has_sent=has_sent,
        may_operate=request.may(caller.Permission.OPERATE),
        deliveries=await delivery_log.page(ctx, account_id, limit=MAX_DELIVERIES),
        webhooks=await endpoints.of_account(ctx, account_id),
    )
    sample = await recipient_sample.read(
        ctx,
        account_id,
        from_hour=shown.chosen.from_hour,
        until_hour=shown.chosen.until_hour,
        narrowing=narrowing,
        limit=recipient_sample.MAX_TIMED,
    )
    return request.page(
        "overview.html",
        found=found,
        shown=shown,
        periods=ranges.PERIODS,
        domains=[domain.name for domain in registered],
        unverified=unverified,
        can_send_unverified=can_send_unverified,
        alerts=attention.alerts(facts),
        sender=sender,
        has_sent=has_sent,
        offers_builtin_endpoint=not has_sent and await welcome.offers_builtin_endpoint(request),
        tiles=[*_tiles(found, shown), *_credit_tile(request, shown, needs_credits=needs_credits)],
        charts=_charts(found.series),
        seconds=chart_ranges.HOURS[shown.chosen.step] * 3_600,
        guard=guard,
        meters=_meters(guard),
        names=PROVIDERS,
        terms=TERMS,
        delivery_times={one.provider: one for one in recipient_sample.delivery_times(sample)},
        timed_all=sample.back_to is None,
        max_timed=recipient_sample.MAX_TIMED,
        max_counted=recipient_sample.MAX_COUNTED,
        min_results=statistics.MIN_RESULTS,
        faults=disposition.FAULT_LABELS,
        explain=disposition.explain,
    )


async def _has_sent(request: requests.PageRequest, found: statistics.Overview) -> bool:
    if found.totals.messages or found.queued:
        return True
    newest = await messages.page(request.ctx, request.account_id, messages.Filters(), limit=1, cursor=None)
    return bool(newest.messages)


def _domain(text: str | None) -> str:
    try:
        return address.parse_domain(text) if text else ""
    except address.AddressError as problem:
        raise errors.InvalidRequest(f"domain: {problem}") from None


def _tag(text: str | None) -> str:
    return labels.check("tag", text, limit=limits.TAG_CHARACTERS) if text else ""


def _tiles(found: statistics.Overview, shown: ranges.ShownRange) -> list[Tile]:
    now, before = found.totals, found.before
    counted = [
        Tile(
            "Messages",
            f"{now.messages:,}",
            _to(now.recipients),
            shown.messages(),
            *_growth(now.messages, before.messages),
        ),
        *(_rate(name, shown.messages(TERMS[name]), now, before) for name in ("delivered", "bounced", "failed")),
    ]
    if shown.narrowing:
        return counted
    return [
        *counted,
        Tile(
            "Queued",
            f"{found.queued:,}{'+' if found.has_more_queued else ''}",
            "recipient" if found.queued == 1 else "recipients",
            urls.messages("status:queued"),
        ),
    ]


def _credit_tile(request: requests.PageRequest, shown: ranges.ShownRange, *, needs_credits: bool) -> list[Tile]:
    if shown.narrowing or not request.site.has_credits:
        return []
    if not needs_credits:
        return [Tile("Credits", "Unlimited", "no credits needed", "/credits")]
    return [Tile("Credits left", f"{request.account.available:,}", "one per recipient", "/credits")]


def _to(recipients: int) -> str:
    return "to 1 recipient" if recipients == 1 else f"to {recipients:,} recipients"


def _growth(now: int, before: int) -> tuple[str, str]:
    """The change in percent, without a tone: more mail is neither good nor bad."""
    if not before or now == before:
        return "", ""
    return f"{100 * (now - before) / before:+,.0f}%".replace("-", "\N{MINUS SIGN}"), ""


def _rate(name: str, path: str, now: statistics.Totals, before: statistics.Totals) -> Tile:
    label = name.title()
    share, share_before = _share(now, name), _share(before, name)
    count = getattr(now, name)
    detail = f"{count:,} of {_final_count(now):,}"
    if share is None:
        return Tile(label, "\N{EN DASH}", "no results yet", path)
    figure = f"{share:.1f}%" if 0 < count < _final_count(now) else f"{share:.0f}%"
    points = 0.0 if share_before is None else round(share - share_before, 1)
    if not points:
        return Tile(label, figure, detail, path)
    tone = "good" if (points > 0) == (name == "delivered") else "bad"
    return Tile(label, figure, detail, path, f"{points:+.1f} points".replace("-", "\N{MINUS SIGN}"), tone)


def _final_count(totals: statistics.Totals) -> int:
    return totals.delivered + totals.bounced + totals.failed


def _share(totals: statistics.Totals, name: str) -> float | None:
    ended = _final_count(totals)
    count: int = getattr(totals, name)
    return 100 * count / ended if ended else None


def _charts(series: statistics.Series) -> list[Chart]:
    return [
        Chart("Messages accepted", (ChartSeries("Messages", "accent", series.messages),)),
        Chart(
            "Final outcomes",
            (
                ChartSeries("Delivered", "delivered", series.delivered, TERMS["delivered"]),
                ChartSeries("Bounced", "bounced", series.bounced, TERMS["bounced"]),
                ChartSeries("Failed", "failed", series.failed, TERMS["failed"]),
            ),
            "Recipients, by the time their message was accepted.",
        ),
        Chart(
            "Deferrals",
            (ChartSeries("Deferred attempts", "deferred", series.deferred, TERMS["deferred"]),),
            "Attempts that were or will be retried. The links list their messages.",
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
