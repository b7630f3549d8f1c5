"""`/` and `/failures`: counts of mail in a range, in which every number is a link, and why mail was not delivered."""

import datetime as dt
from collections.abc import Sequence
from typing import Final

import msgspec

from postroad.dashboard.framework import forms, navigation, reputation, requests, verdicts
from postroad.dashboard.mail import alerts, welcome
from postroad.model.bounces import disposition, failure_causes
from postroad.model.delivery import providers
from postroad.model.mail import limits
from postroad.model.people import callers
from postroad.model.search import search_query, search_values
from postroad.model.units import chart_ranges, labels, times
from postroad.services.accounts import account_registry as accounts
from postroad.services.accounts import credits, failure_report, statistics
from postroad.services.domains import domain_registry as domains
from postroad.services.domains import received_reports
from postroad.services.messages import bulk_actions, sample_send
from postroad.services.messages import lookup as messages
from postroad.services.webhooks import endpoints
from postroad.web import routing

# The range that a page of counts shows, and the lists of messages that it counts.
#
# A range is a period or days of one's choice, in the time zone of the person. A link leads to the search for the
# messages that a number counts: what was accepted in the range, or in one bucket of it.

RANGE_PERIODS: Final = {
    chart_ranges.Period.DAY: "24 hours",
    chart_ranges.Period.WEEK: "7 days",
    chart_ranges.Period.MONTH: "30 days",
    chart_ranges.Period.QUARTER: "90 days",
}


class RangeQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"first": "from", "last": "until"}):
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
    narrowing: statistics.Narrowing = statistics.ALL_MAIL

    @property
    def words(self) -> str:
        """`last 7 days`, `2026-11-01 to 2026-11-03`."""
        if self.period is not None:
            return f"last {RANGE_PERIODS[self.period]}"
        return self.first if self.first == self.last else f"{self.first} to {self.last}"

    @property
    def before(self) -> str:
        if self.period is not None:
            return f"the previous {RANGE_PERIODS[self.period]}"
        days = (dt.date.fromisoformat(self.last) - dt.date.fromisoformat(self.first)).days + 1
        return "the day before" if days == 1 else f"the {days} days before"

    def path_of(self, path: str, period: chart_ranges.Period | None = None) -> str:
        """A page of counts with a period; without one, with this range."""
        chosen = period or self.period
        bounds = {"period": chosen.value} if chosen else {"from": self.first, "until": self.last}
        return navigation.url(path, **bounds, domain=self.narrowing.domain, tag=self.narrowing.tag)

    def messages(self, *terms: str) -> str:
        """The list of the messages of the range that these terms find."""
        return navigation.messages_url(self._search(terms, self.chosen.from_hour, self.chosen.until_hour))

    def bulk(self, action: bulk_actions.Action, *terms: str) -> str:
        return navigation.bulk_url(action, self._search(terms, self.chosen.from_hour, self.chosen.until_hour))

    def bucket(self, place: int, *terms: str) -> str:
        return navigation.messages_url(self._search(terms, self.chosen.bounds[place], self.chosen.bounds[place + 1]))

    def _search(self, terms: tuple[str, ...], from_hour: int, until_hour: int) -> str:
        tag = search_query.format(search_query.Query(tag=self.narrowing.tag)) if self.narrowing.tag else ""
        domain = f"from:@{self.narrowing.domain}" if self.narrowing.domain else ""
        is_open = until_hour * times.HOUR > self.now
        bounds = (f"after:{_range_in_words(from_hour)}", "" if is_open else f"before:{_range_in_words(until_hour)}")
        return " ".join(filter(None, (*terms, domain, tag, *bounds)))


def read_range(
    request: requests.PageRequest,
    query: RangeQuery,
    narrowing: statistics.Narrowing = statistics.ALL_MAIL,
) -> ShownRange:
    """The range that a query asks for; seven days when it says nothing."""
    now, zone = request.ctx.clock(), request.zone
    today = times.local(now, zone).date()
    if query.first or query.last:
        first = forms.day("from", query.first)
        last = forms.day("until", query.last) if query.last else today
        chosen = chart_ranges.of_days(first, last, now=now, zone=zone)
        return ShownRange(chosen, None, first.isoformat(), last.isoformat(), now, narrowing)
    period = query.period or chart_ranges.Period.WEEK
    chosen = chart_ranges.of_period(period, now=now, zone=zone)
    first = times.local(chosen.starts[0], zone).date()
    return ShownRange(chosen, period, first.isoformat(), today.isoformat(), now, narrowing)


def _range_in_words(hour: int) -> str:
    return f"{times.to_wire(hour * times.HOUR)[:16]}Z"


# The searches for the recipients that are counted.
BLOCKED: Final = f"outcome:bounced OR outcome:failed cause:{disposition.Fault.REPUTATION}"
TERMS: Final = {
    "delivered": "outcome:delivered",
    "bounced": "status:bounced",
    "failed": "outcome:failed OR outcome:expired",
    "deferred": f"outcome:{search_values.RETRIED}",
}
PROVIDERS: Final = {**providers.NAMES, providers.OTHERS: "All others"}
# Domains. More would hide the figures; the list of domains has all.
MAX_NAMED: Final = 3
# Room above the suspension line, bounded so that an extreme value does not squeeze the lines together.
METER_HEADROOM: Final = 1.25
METER_MAX_RATIO: Final = 2


class Query(RangeQuery, frozen=True, forbid_unknown_fields=True):
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
    """Series over the buckets of a range; only what adds up is in one chart. `rates` are drawn as a line, if given."""

    name: str
    series: tuple[ChartSeries, ...]
    rates: Sequence[verdicts.Results] = ()


class Meter(msgspec.Struct, frozen=True):
    name: str
    counted: int
    percent: float
    warn: float
    suspend: float

    def position(self, percent: float) -> float:
        end = METER_HEADROOM * max(self.suspend, min(self.percent, METER_MAX_RATIO * self.suspend))
        return round(min(100.0, 100 * percent / end), 2)

    @property
    def level(self) -> str:
        if self.percent >= self.suspend:
            return "bad"
        return "warn" if self.percent >= self.warn else "good"


async def show(request: requests.PageRequest) -> routing.Response:
    query: Query = request.query
    ctx, account_id = request.ctx, request.account_id
    domain = labels.parse_domain("domain", query.domain) if query.domain else ""
    narrowing = statistics.Narrowing(domain, _tag(query.tag))
    shown = read_range(request, query, narrowing)
    found = await statistics.overview(ctx, account_id, shown.chosen, narrowing)
    guard = await accounts.sending(ctx, request.account)
    sender = await sample_send.default_sender(ctx, account_id)
    needs_credits = credits.needs_credits(ctx, request.account)
    has_sent = await _has_sent(request, found)
    registered = await domains.of_account(ctx, account_id)
    can_send_unverified = not ctx.settings.domains.require_verified
    unverified = registered[0] if registered and sender is None else None
    now = ctx.clock()
    recent = await statistics.recent(ctx, account_id, from_hour=verdicts.first_hour(now, request.zone))
    rate = verdicts.rate_of(recent, now=now, zone=request.zone)
    facts = alerts.AlertFacts(
        account=request.account,
        guard=guard,
        sender=sender,
        unverified=unverified,
        can_send_unverified=can_send_unverified,
        daily_recipients=await statistics.daily_recipients(ctx, account_id),
        needs_credits=needs_credits,
        has_sent=has_sent,
        may_operate=request.may(callers.Permission.OPERATE),
        domains=registered,
        webhooks=await endpoints.of_account(ctx, account_id),
        conditions=found.conditions,
        deferring=tuple(verdicts.deferring(recent, now=now)),
        used=frozenset(row.provider for row in recent.rows),
    )
    sample = await statistics.read_sample(
        ctx,
        account_id,
        from_hour=shown.chosen.from_hour,
        until_hour=shown.chosen.until_hour,
        narrowing=narrowing,
        limit=statistics.MAX_TIMED,
    )
    rows = [reputation.ProviderRow(counts, guard.complaint_warn_percent) for counts in found.providers]
    return request.page(
        "overview.html",
        found=found,
        rows=rows,
        reputation=None if narrowing else reputation.assess(rows, guard=guard.state),
        warming=(await domains.in_warmup(ctx, registered))[:MAX_NAMED],
        reported=await received_reports.passed(ctx, [each for each in registered if each.verified_at][:MAX_NAMED]),
        blocked_terms=BLOCKED,
        shown=shown,
        periods=RANGE_PERIODS,
        domains=[domain.name for domain in registered],
        unverified=unverified,
        can_send_unverified=can_send_unverified,
        verdict=verdicts.compose(
            [*alerts.alerts(facts), *verdicts.fallen(rate, navigation.url("/failures", period="24h"))], rate
        ),
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
        delivery_times={delivery_time.provider: delivery_time for delivery_time in statistics.delivery_times(sample)},
        timed_all=sample.back_to is None,
        max_timed=statistics.MAX_TIMED,
        max_counted=statistics.MAX_COUNTED,
        min_results=statistics.MIN_RESULTS,
        faults=disposition.FAULT_LABELS,
        explain=disposition.explain,
    )


async def _has_sent(request: requests.PageRequest, found: statistics.Overview) -> bool:
    if found.totals.messages or found.queued:
        return True
    newest = await messages.page(request.ctx, request.account_id, messages.Filters(), limit=1, cursor=None)
    return bool(newest.messages)


def _tag(text: str | None) -> str:
    return labels.check_label("tag", text, limit=limits.TAG_CHARACTERS) if text else ""


def _tiles(found: statistics.Overview, shown: ShownRange) -> list[Tile]:
    now, before = found.totals, found.before
    counted = [
        Tile(
            "Messages",
            f"{now.messages:,}",
            "to 1 recipient" if now.recipients == 1 else f"to {now.recipients:,} recipients",
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
            navigation.messages_url("status:queued"),
        ),
    ]


def _credit_tile(request: requests.PageRequest, shown: ShownRange, *, needs_credits: bool) -> list[Tile]:
    if shown.narrowing or not needs_credits:
        return []
    return [Tile("Credits left", f"{request.account.available:,}", "one per recipient", "/credits")]


def _growth(now: int, before: int) -> tuple[str, str]:
    """The change in percent, without a tone: more mail is neither good nor bad."""
    if not before or now == before:
        return "", ""
    return f"{_arrow(now - before)} {100 * abs(now - before) / before:,.0f}%", ""


def _rate(name: str, path: str, now: statistics.Counts, before: statistics.Counts) -> Tile:
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
    return Tile(label, figure, detail, path, f"{_arrow(points)} {abs(points):.1f}%", tone)


def _arrow(change: float) -> str:
    return "\N{UPWARDS ARROW}" if change > 0 else "\N{DOWNWARDS ARROW}"


def _final_count(totals: statistics.Counts) -> int:
    return totals.delivered + totals.bounced + totals.failed


def _share(totals: statistics.Counts, name: str) -> float | None:
    ended = _final_count(totals)
    count: int = getattr(totals, name)
    return 100 * count / ended if ended else None


def _charts(series: statistics.Series) -> list[Chart]:
    ended = [sum(counts) for counts in zip(series.delivered, series.bounced, series.failed, strict=True)]
    return [
        Chart(
            "Results",
            (
                ChartSeries("Delivered", "delivered", series.delivered, TERMS["delivered"]),
                ChartSeries("Bounced", "bounced", series.bounced, TERMS["bounced"]),
                ChartSeries("Failed", "failed", series.failed, TERMS["failed"]),
            ),
            list(map(verdicts.Results, series.delivered, ended)),
        ),
        Chart("Deferred", (ChartSeries("Deferred attempts", "deferred", series.deferred, TERMS["deferred"]),)),
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


ROUTES: Final = (requests.get("/", show, query=Query, is_live=True),)


NOBODY: Final = "No provider"
# Those who may not change anything can still look.
FAILURES_READ: Final = "Read the replies"


class FailureAction(msgspec.Struct, frozen=True):
    """A link; `is_external` leaves the dashboard."""

    text: str
    path: str
    is_external: bool = False


class FailureRow(msgspec.Struct, frozen=True):
    """A group with its links. `bars` are the heights of the trend in percent."""

    group: failure_report.FailureGroup
    cause: failure_causes.FailureCause
    provider: str
    path: str
    action: FailureAction
    change: str
    bars: list[float]


async def show_failures(request: requests.PageRequest) -> routing.Response:
    query: RangeQuery = request.query
    shown = read_range(request, query)
    found = await failure_report.read(request.ctx, request.account_id, shown.chosen)
    may_change = request.may(callers.Permission.CHANGE)
    suppresses = request.ctx.settings.testing.suppress
    return request.page(
        "failures.html",
        shown=shown,
        periods=RANGE_PERIODS,
        found=found,
        rows=[_row(group, shown, may_change=may_change, suppresses=suppresses) for group in found.groups],
        bounced_path=shown.messages(TERMS["bounced"]),
        failed_path=shown.messages(TERMS["failed"]),
        overview_path=shown.path_of("/"),
    )


def _row(group: failure_report.FailureGroup, shown: ShownRange, *, may_change: bool, suppresses: bool) -> FailureRow:
    terms = failure_causes.search_terms(group.cause), failure_causes.provider_term(group.provider)
    path = shown.messages(*terms)
    cause = group.described
    highest = max(group.trend, default=0) or 1
    return FailureRow(
        group,
        cause,
        PROVIDERS.get(group.provider, group.provider) or NOBODY,
        path,
        _action(cause.action, group, shown, terms, suppresses=suppresses)
        if may_change
        else FailureAction(FAILURES_READ, path),
        f"{group.count - group.before:+,}".replace("-", "\N{MINUS SIGN}") if group.count != group.before else "",
        [round(100 * value / highest, 1) for value in group.trend],
    )


def _action(
    action: failure_causes.Action,
    group: failure_report.FailureGroup,
    shown: ShownRange,
    terms: tuple[str, ...],
    *,
    suppresses: bool,
) -> FailureAction:
    match action:
        case failure_causes.Action.READ_GUIDANCE:
            url, title = failure_causes.GUIDANCE[group.provider]
            return FailureAction(f"{PROVIDERS[group.provider]}: {title}", url, is_external=True)
        case failure_causes.Action.CHECK_DOMAIN:
            return FailureAction("Check the domain", "/domains")
        case failure_causes.Action.SEE_SUPPRESSIONS:
            return FailureAction("See suppressions", "/suppressions")
        case failure_causes.Action.SUPPRESS if suppresses and group.cause not in failure_causes.FOUND_IN_DNS:
            # They were suppressed when they bounced.
            return FailureAction("See suppressions", "/suppressions")
        case failure_causes.Action.SUPPRESS:
            return FailureAction("Suppress these addresses", shown.bulk(bulk_actions.Action.SUPPRESS, *terms))
        case failure_causes.Action.RESEND if group.example is None:
            # Counts are kept longer than messages, of which there may be none any more.
            return FailureAction(FAILURES_READ, shown.messages(*terms))
        case failure_causes.Action.RESEND:
            return FailureAction("Resend these messages", shown.bulk(bulk_actions.Action.RESEND, *terms))
        case failure_causes.Action.READ_REPLY:
            return FailureAction(FAILURES_READ, shown.messages(*terms))


FAILURE_ROUTES: Final = (requests.get("/failures", show_failures, query=RangeQuery, is_live=True),)
