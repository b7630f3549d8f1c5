"""`/v1/statistics`: delivery counts, the oldest waiting recipient and the latest failures."""

from typing import Annotated, Final, Literal

import msgspec

from postroad import context
from postroad.api import emails
from postroad.api.v1 import resource
from postroad.model.bounces import disposition
from postroad.model.units import chart_ranges, times
from postroad.services.accounts import failure_report, statistics
from postroad.services.messages import queue_inspection
from postroad.storage.mail import attempts
from postroad.web import routing

RESOURCE: Final = resource.Resource("Messages")


class StatisticsQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The period."""

    period: Annotated[
        chart_ranges.Period | None,
        msgspec.Meta(description="The last 24 hours (the default), 7 days, 30 days or 90 days."),
    ] = chart_ranges.Period.DAY


class CountsFrom(statistics.Counts, frozen=True, kw_only=True):
    """Counts of one interval."""

    at: Annotated[times.WireTime, msgspec.Meta(description="Start of the interval.")]


class CauseCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Recipients that were not delivered for one cause at one mailbox provider."""

    cause: Annotated[
        str,
        msgspec.Meta(
            description="A reason such as `mailbox_full`; `suppressed`, `expired` or `retries_ended` without an "
            "attempt; empty when it was not recorded."
        ),
    ]
    provider: Annotated[str, msgspec.Meta(description="The mailbox provider; empty for what no server decided.")]
    bounced: int
    failed: int
    explanation: str


class OldestRecipient(msgspec.Struct, frozen=True, kw_only=True):
    """The recipient that has been waiting the longest."""

    message_id: str
    recipient_id: str
    email: str
    state: emails.QueueState
    queued_at: times.WireTime
    attempt_count: int
    next_attempt_at: Annotated[
        times.WireTime | None,
        msgspec.Meta(description="Time of the next attempt; null when it is not scheduled."),
    ]
    reason: Annotated[str, msgspec.Meta(description="Why it has not been delivered yet.")]
    last_smtp_code: int | None
    last_smtp_response: str | None


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """A recipient that bounced or failed: the reply, the cause and an explanation."""

    message_id: str
    recipient_id: str
    email: str
    at: times.WireTime
    verdict: Literal["bounced", "failed"]
    smtp_code: int | None
    smtp_response: str
    fault: disposition.Fault | None
    reason: str
    explanation: str


class Statistics(msgspec.Struct, frozen=True, kw_only=True):
    """Delivery statistics of the account."""

    period: chart_ranges.Period
    series: Annotated[
        list[CountsFrom],
        msgspec.Meta(
            description="The period as 24 hours, 28 quarter days, or 30 or 90 days, in UTC. The last interval "
            "is the current one."
        ),
    ]
    totals: statistics.Counts
    before: Annotated[statistics.Counts, msgspec.Meta(description="The previous period, up to the same hour.")]
    providers: Annotated[
        list[statistics.ProviderCounts],
        msgspec.Meta(
            description="Highest refusal rate first; providers with fewer than 20 results last. Recipients that no "
            "server decided about are not included."
        ),
    ]
    causes: Annotated[
        list[CauseCounts],
        msgspec.Meta(description="The recipients of `bounced` and `failed` of the totals by cause, most first."),
    ]
    queued: Annotated[
        int,
        msgspec.Meta(description="Recipients waiting for delivery; counted up to 10,000 where mail costs no credits."),
    ]
    oldest: OldestRecipient | None
    failures: Annotated[list[Failure], msgspec.Meta(description="The ten latest, regardless of the period.")]


class StatisticsResponse(resource.Response, frozen=True):
    """The statistics."""

    statistics: Statistics


def _statistics(
    found: statistics.Overview, failures: failure_report.FailureReport, period: chart_ranges.Period
) -> Statistics:
    return resource.from_record(
        Statistics,
        found,
        period=period,
        series=_series(found.series),
        causes=[_cause(group) for group in failures.groups],
        oldest=_oldest(found.oldest) if found.oldest else None,
        failures=[_failure(failure) for failure in found.failures],
    )


def _series(series: statistics.Series) -> list[CountsFrom]:
    names = statistics.Counts.__struct_fields__
    counts = zip(*(getattr(series, name) for name in names), strict=True)
    return [
        CountsFrom(at=times.to_wire(start), **dict(zip(names, row, strict=True)))
        for start, row in zip(series.starts, counts, strict=True)
    ]


def _cause(group: failure_report.FailureGroup) -> CauseCounts:
    return CauseCounts(
        cause=group.cause,
        provider=group.provider,
        bounced=group.bounced,
        failed=group.failed,
        explanation=group.described.explanation,
    )


def _oldest(line: queue_inspection.QueueEntry) -> OldestRecipient:
    next_attempt_at = times.optional_to_wire(line.reason.next_attempt_at)
    return resource.from_record(OldestRecipient, line.waiting, next_attempt_at=next_attempt_at, reason=line.why)


def _failure(found: attempts.FinalRefusal) -> Failure:
    verdict = "bounced" if found.verdict == disposition.Verdict.BOUNCED else "failed"
    return resource.from_record(
        Failure,
        found,
        at=times.to_wire(found.started_at),
        verdict=verdict,
        smtp_response=found.response,
        fault=found.fault or None,
        explanation=disposition.explain(found.reason),
    )


async def show(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Get delivery statistics.

    Counts of a period by interval, by mailbox provider and by cause, what waits in the queue, and the latest failures.
    """
    query: StatisticsQuery = request.query
    period = query.period or chart_ranges.Period.DAY
    chosen = chart_ranges.of_period(period, now=ctx.clock())
    found = await statistics.overview(ctx, request.caller.account_id, chosen)
    failures = await failure_report.read(ctx, request.caller.account_id, chosen)
    return routing.Response(200, StatisticsResponse(_statistics(found, failures, period), request_id=request.id))


ROUTES: Final = (
    RESOURCE.route("GET /v1/statistics", show, query=StatisticsQuery, responses={200: StatisticsResponse}),
)
