"""`/v1/operator/providers`: where mail goes, with which limits and why, and changes at run time."""

from typing import Annotated, Any, Final, Literal

import msgspec

from postroad import context, errors
from postroad.api.v1 import resource
from postroad.model.units import labels, times
from postroad.services.operations import destinations, operator_queue
from postroad.storage.mail import delivery_controls, mail_counts
from postroad.storage.operations import processes
from postroad.web import routing

RESOURCE: Final = resource.Resource("Destinations")
Limit = Annotated[int, msgspec.Meta(ge=1, le=destinations.MAX_LIMIT)]
Reason = Annotated[str, msgspec.Meta(min_length=1, max_length=labels.REASON_CHARACTERS)]
Until = Annotated[
    resource.Timestamp, msgspec.Meta(description="When the settings apply again (RFC 3339); never if absent.")
]


class ProviderLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of a provider queue, on each host, for each of its source addresses."""

    connections: int
    messages_per_second: int
    messages_per_connection: int


class ChangeReason(msgspec.Struct, frozen=True, kw_only=True):
    """Why a change is in force, and until when; null: until it is ended."""

    reason: str
    until: times.WireTime | None


class ProviderChange(msgspec.Struct, frozen=True, kw_only=True):
    """What an operator has changed."""

    name: Annotated[str, msgspec.Meta(description="The provider queue that was changed, or `others` for all of them.")]
    pause: Annotated[ChangeReason | None, msgspec.Meta(description="Null if it is not paused.")]
    limits: Annotated[ChangeReason | None, msgspec.Meta(description="Null if no limit is changed.")]
    set_by: Annotated[str, msgspec.Meta(description="The id of the user or the API key of the last change.")]
    set_at: Annotated[times.WireTime, msgspec.Meta(description="When the last change was made.")]


class WorkerReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a delivery process reports of a provider queue that is slowed, paused or blocked."""

    worker: str
    source: Annotated[str, msgspec.Meta(description="The source address that it is about; empty for all of them.")]
    state: Annotated[
        Literal["slowed", "paused", "blocked"],
        msgspec.Meta(
            description="`slowed`: the adaptive rate is below the limits. `paused`: the provider asked to slow down. "
            "`blocked`: no host answers, and the circuit breaker skips them."
        ),
    ]
    last_error: str
    until: times.WireTime | None
    updated_at: times.WireTime


class ProviderCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Recipients of mail that was accepted in this hour and the one before."""

    delivered: int
    bounced: int
    failed: int
    deferred: Annotated[int, msgspec.Meta(description="Deferred attempts, which will be retried.")]
    deferred_share: Annotated[
        float | None, msgspec.Meta(description="The share of all attempts that were deferred, from 0 to 1.")
    ]
    delivery_seconds: Annotated[
        float | None, msgspec.Meta(description="Mean time of those that were delivered, since they were queued.")
    ]


class Destination(msgspec.Struct, frozen=True, kw_only=True):
    """A provider queue: its state, its limits, and why these are in force."""

    name: str
    state: Annotated[
        Literal["open", "slowed", "paused", "blocked"],
        msgspec.Meta(description="The worst that a host reports; also `paused` by an operator."),
    ]
    limits: Annotated[ProviderLimits, msgspec.Meta(description="Those in force.")]
    settings: Annotated[ProviderLimits, msgspec.Meta(description="Those of the settings.")]
    change: ProviderChange | None
    hosts: list[WorkerReport]
    last_hours: Annotated[
        ProviderCounts | None,
        msgspec.Meta(description="Null without such mail, while it is not counted yet, and in responses to changes."),
    ]


class Destinations(resource.Response, frozen=True):
    """Providers with names, upstreams, and all others that are slowed, paused, blocked or changed."""

    providers: list[Destination]


class DestinationResponse(resource.Response, frozen=True):
    """One provider queue."""

    provider: Destination


class Pause(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Why a provider is paused, and until when."""

    reason: Reason
    until: Until | None = None


class LimitChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The limits to change; those that are absent are those of the settings."""

    connections: Limit | None = None
    messages_per_second: Limit | None = None
    messages_per_connection: Limit | None = None
    reason: Reason
    until: Until | None = None


def _shown(destination: destinations.Destination, counts: mail_counts.ProviderTotal | None = None) -> Destination:
    return resource.from_record(
        Destination,
        destination,
        state=destination.state,
        limits=ProviderLimits(**destination.limits),
        settings=ProviderLimits(**destination.settings),
        change=None if destination.override is None else _change_shown(destination.override),
        hosts=[_report(report) for report in destination.reported],
        last_hours=None if counts is None else _counts(counts),
    )


def _change_shown(change: delivery_controls.Override) -> ProviderChange:
    pause = ChangeReason(reason=change.pause_reason, until=times.optional_to_wire(change.pause_until))
    limits = ChangeReason(reason=change.limits_reason, until=times.optional_to_wire(change.limits_until))
    return resource.from_record(
        ProviderChange,
        change,
        pause=pause if change.paused else None,
        limits=limits if change.has_limits else None,
    )


def _counts(counts: mail_counts.ProviderTotal) -> ProviderCounts:
    mean = counts.mean_delivery_time
    return resource.from_record(
        ProviderCounts,
        counts,
        deferred_share=round(counts.deferred / counts.attempts, 4) if counts.attempts else None,
        delivery_seconds=None if mean is None else round(mean / times.SECOND, 3),
    )


def _report(report: processes.QueueStatus) -> WorkerReport:
    until = None if report.state == "slowed" else times.to_wire(report.until)
    return resource.from_record(WorkerReport, report, last_error=report.reason, until=until)


def _until(text: str | None) -> int | None:
    return None if text is None else resource.parse_timestamp("until", text)


def _changed(request: routing.Request, destination: destinations.Destination) -> routing.Response:
    return routing.Response(200, DestinationResponse(_shown(destination), request_id=request.id))


async def pause(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Pause delivery to a provider.

    Applies on all hosts within a second. Attempts under way finish; mail waits and is not lost.
    """
    body: Pause = request.body
    until = _until(body.until)
    return _changed(request, await destinations.pause(ctx, request.path["name"], reason=body.reason, until=until))


async def resume(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Resume delivery to a paused provider.

    Changed limits stay.
    """
    return _changed(request, await destinations.resume(ctx, request.path["name"]))


async def change(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Change the limits of a provider without a restart.

    Applies on all hosts within a second. Each limit is for each host and each of its source addresses; the adaptive
    rate may still be lower.
    """
    body: LimitChange = request.body
    given = {name: getattr(body, name) for name in destinations.LIMITS if getattr(body, name) is not None}
    changed = await destinations.set_limits(
        ctx, request.path["name"], given, reason=body.reason, until=_until(body.until)
    )
    return _changed(request, changed)


async def restore(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Use the settings of a provider again.

    Ends a pause and changed limits.
    """
    return _changed(request, await destinations.restore(ctx, request.path["name"]))


def _change(endpoint: str, handler: routing.Handler[context.Context], **options: Any) -> resource.OperatorRoute:
    responses = {200: DestinationResponse}
    return resource.operator_route(
        RESOURCE, endpoint, handler, responses=responses, errors=(errors.Conflict,), **options
    )


def routes(summary: operator_queue.QueueSummary) -> tuple[resource.OperatorRoute, ...]:
    """The routes, with the numbers of this process."""

    async def index(ctx: context.Context, request: routing.Request) -> routing.Response:
        """List where mail goes: providers, upstreams, and hosts that are slowed, paused or blocked."""
        counted = await summary.read(ctx) or operator_queue.NOTHING
        totals = {provider.provider: provider for provider in counted.providers}
        found = [_shown(destination, totals.get(destination.name)) for destination in await destinations.listed(ctx)]
        return routing.Response(200, Destinations(found, request_id=request.id))

    async def show(ctx: context.Context, request: routing.Request) -> routing.Response:
        """Get a provider queue."""
        destination = await destinations.find(ctx, request.path["name"])
        counted = await summary.read(ctx) or operator_queue.NOTHING
        counts = next((each for each in counted.providers if each.provider == destination.name), None)
        return routing.Response(200, DestinationResponse(_shown(destination, counts), request_id=request.id))

    return (
        resource.operator_route(RESOURCE, "GET /v1/operator/providers", index, responses={200: Destinations}),
        resource.operator_route(
            RESOURCE, "GET /v1/operator/providers/{name}", show, responses={200: DestinationResponse}
        ),
        _change("POST /v1/operator/providers/{name}/pause", pause, body=Pause),
        _change("POST /v1/operator/providers/{name}/resume", resume),
        _change("PUT /v1/operator/providers/{name}/limits", change, body=LimitChange),
        _change("DELETE /v1/operator/providers/{name}/limits", restore),
    )
