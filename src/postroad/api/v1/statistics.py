"""`/v1/statistics`: delivery counts, the oldest waiting recipient and the latest failures."""

from dataclasses import asdict
from typing import Annotated, Final, Literal

import msgspec

from postroad.api import email_schemas
from postroad.api.v1 import resource, schemas
from postroad.model import times
from postroad.model.bounces import disposition
from postroad.services import context
from postroad.services.accounts import statistics
from postroad.services.queue import inspection
from postroad.web import routing

RESOURCE: Final = resource.Resource("Messages")


class StatisticsQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The period."""

    period: Annotated[
        statistics.Period | None,
        msgspec.Meta(description="The last 24 hours (the default), 7 days or 30 days."),
    ] = statistics.Period.DAY


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """Accepted messages and the results of recipients."""

    messages: Annotated[int, msgspec.Meta(description="Accepted messages.")]
    recipients: Annotated[int, msgspec.Meta(description="Their recipients.")]
    delivered: Annotated[int, msgspec.Meta(description="Recipients accepted by the receiving server.")]
    bounced: Annotated[int, msgspec.Meta(description="Recipients refused permanently.")]
    failed: Annotated[int, msgspec.Meta(description="Recipients that failed or expired.")]
    deferred: Annotated[int, msgspec.Meta(description="Deferred attempts, which will be retried.")]


class CountsFrom(Counts, frozen=True, kw_only=True):
    """Counts of one interval."""

    at: Annotated[times.WireTime, msgspec.Meta(description="Start of the interval.")]


class ProviderCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Results at one mailbox provider."""

    name: Annotated[
        str,
        msgspec.Meta(description="The mailbox provider; `others` is every destination without a provider of its own."),
    ]
    delivered: int
    bounced: int
    failed: int
    deferred: int


class OldestRecipient(msgspec.Struct, frozen=True, kw_only=True):
    """The recipient that has been waiting the longest."""

    message_id: str
    recipient_id: str
    email: str
    state: email_schemas.QueueState
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

    period: statistics.Period
    series: Annotated[
        list[CountsFrom],
        msgspec.Meta(
            description="The period as 24 hours, 28 quarter days or 30 days, in UTC. The last interval "
            "is the current one."
        ),
    ]
    totals: Counts
    before: Annotated[Counts, msgspec.Meta(description="The previous period, up to the same hour.")]
    providers: Annotated[
        list[ProviderCounts],
        msgspec.Meta(
            description="Highest refusal rate first; providers with fewer than 20 results last. Recipients that no "
            "server decided about are not included."
        ),
    ]
    queued: Annotated[int, msgspec.Meta(description="Recipients waiting for delivery.")]
    oldest: OldestRecipient | None
    failures: Annotated[list[Failure], msgspec.Meta(description="The ten latest, regardless of the period.")]


class StatisticsResponse(schemas.Response, frozen=True):
    """The statistics."""

    statistics: Statistics


def _statistics(found: statistics.Overview) -> Statistics:
    return schemas.from_record(
        Statistics,
        found,
        series=_series(found.series),
        totals=Counts(**asdict(found.totals)),
        before=Counts(**asdict(found.before)),
        providers=[ProviderCounts(**asdict(provider)) for provider in found.providers],
        oldest=_oldest(found.oldest) if found.oldest else None,
        failures=[_failure(failure) for failure in found.failures],
    )


def _series(series: statistics.Series) -> list[CountsFrom]:
    names = Counts.__struct_fields__
    counts = zip(*(getattr(series, name) for name in names), strict=True)
    return [
        CountsFrom(at=times.to_wire(start), **dict(zip(names, row, strict=True)))
        for start, row in zip(series.starts, counts, strict=True)
    ]


def _oldest(line: inspection.QueueEntry) -> OldestRecipient:
    next_attempt_at = times.optional_to_wire(line.reason.next_attempt_at)
    return schemas.from_record(OldestRecipient, line.waiting, next_attempt_at=next_attempt_at, reason=line.why)


def _failure(found: statistics.Failure) -> Failure:
    verdict = "bounced" if found.verdict == disposition.Verdict.BOUNCED else "failed"
    return schemas.from_record(
        Failure,
        found,
        at=times.to_wire(found.at),
        verdict=verdict,
        smtp_response=found.response,
        fault=found.fault or None,
    )


async def show(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Get delivery statistics.

    Counts of a period by interval and by mailbox provider, what waits in the queue, and the latest failures.
    """
    query: StatisticsQuery = request.query
    found = await statistics.overview(ctx, request.caller.account_id, query.period or statistics.Period.DAY)
    return routing.Response(200, StatisticsResponse(_statistics(found), request_id=request.id))


ROUTES: Final = (
    RESOURCE.route("GET /v1/statistics", show, query=StatisticsQuery, responses={200: StatisticsResponse}),
)
