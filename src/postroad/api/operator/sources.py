"""`/v1/operator/sources`: the addresses that mail is sent from, their states, and changes at run time."""

from typing import Annotated, Any, Final, Literal

import msgspec

from postroad import context, errors
from postroad.api.v1 import resource
from postroad.model.units import labels, times
from postroad.services.queue import sources
from postroad.storage.mail import delivery_controls
from postroad.web import routing

RESOURCE: Final = resource.Resource("Source addresses")
Reason = Annotated[str, msgspec.Meta(min_length=1, max_length=labels.REASON_CHARACTERS)]
Provider = Annotated[
    str, msgspec.Meta(description="A provider with a name, such as `google`, `others`, or an upstream.")
]
Until = Annotated[resource.Timestamp, msgspec.Meta(description="When the pause ends (RFC 3339); never if absent.")]


class SourceChange(msgspec.Struct, frozen=True, kw_only=True):
    """A state that an operator has set, or the service itself."""

    state: Literal["paused", "draining", "warming"]
    reason: str
    set_by: Annotated[
        str,
        msgspec.Meta(
            description="The id of the user or the API key, `operator` for a command, or empty for the service itself."
        ),
    ]
    set_at: times.WireTime
    until: times.WireTime | None


class SourceWarmupDay(msgspec.Struct, frozen=True, kw_only=True):
    """A day of the warm-up towards one provider."""

    number: int
    recipients: Annotated[int, msgspec.Meta(description="The most that are sent to the provider on this day.")]
    used: int | None
    state: Literal["done", "today", "ahead"]


class SourceProvider(msgspec.Struct, frozen=True, kw_only=True):
    """The attempts of an address to one provider over the last seven days, and today."""

    provider: str
    delivered: int
    deferred: int
    refused: int
    blocked: Annotated[int, msgspec.Meta(description="Deferred or refused because the provider blocks the address.")]
    paused: SourceChange | None
    warmup: list[SourceWarmupDay]


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """A source address."""

    name: str
    address: str
    hello_name: Annotated[str, msgspec.Meta(description="The name in EHLO; empty: that of `delivery.hostname`.")]
    pool: str
    state: Literal["active", "paused", "draining", "warming"]
    changes: list[SourceChange]
    providers: list[SourceProvider]


class Sources(resource.Response, frozen=True):
    """The source addresses of the settings; empty where the system chooses the address."""

    sources: list[Source]


class SourceResponse(resource.Response, frozen=True):
    """One source address."""

    source: Source


class SourcePause(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Why an address is paused, until when, and for which provider; absent: for all of them."""

    reason: Reason
    until: Until | None = None
    provider: Provider | None = None


class SourceResume(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The provider that an address was paused for; absent if it was paused for all of them."""

    provider: Provider | None = None


class SourceDrain(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Why an address is drained."""

    reason: Reason


def _change(row: delivery_controls.SourceState) -> SourceChange:
    return resource.from_record(SourceChange, row, until=times.optional_to_wire(row.until))


def _shown(source_view: sources.SourceView) -> Source:
    return resource.from_record(
        Source,
        source_view.source,
        state=source_view.state,
        changes=[_change(row) for row in source_view.states if not row.provider],
        providers=[
            resource.from_record(
                SourceProvider,
                view.counts,
                paused=None if view.pause is None else _change(view.pause),
                warmup=[
                    SourceWarmupDay(number=day.number, recipients=day.cap, used=day.used, state=day.state.value)
                    for day in view.calendar
                ],
            )
            for view in source_view.providers
        ],
    )


def _answer(request: routing.Request, source_view: sources.SourceView) -> routing.Response:
    return routing.Response(200, SourceResponse(_shown(source_view), request_id=request.id))


async def index(ctx: context.Context, request: routing.Request) -> routing.Response:
    """List the source addresses with their states, their warm-up, and attempts by provider."""
    return routing.Response(
        200, Sources([_shown(source) for source in await sources.listed(ctx)], request_id=request.id)
    )


async def show(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Get a source address."""
    return _answer(request, await sources.find(ctx, request.path["name"]))


async def pause(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Pause a source address.

    Applies on all hosts within a second. Attempts under way finish; other addresses of the pool take over, or mail
    waits.
    """
    body: SourcePause = request.body
    until = None if body.until is None else resource.parse_timestamp("until", body.until)
    paused = await sources.pause(
        ctx, request.path["name"], provider=body.provider or "", reason=body.reason, until=until
    )
    return _answer(request, paused)


async def resume(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Resume a source address that is paused or draining.

    A warm-up continues where it was.
    """
    body: SourceResume = request.body
    return _answer(request, await sources.resume(ctx, request.path["name"], provider=body.provider or ""))


async def drain(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Drain a source address.

    What was claimed for it is sent, and nothing more.
    """
    body: SourceDrain = request.body
    return _answer(request, await sources.drain(ctx, request.path["name"], reason=body.reason))


async def warm_up(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Start the warm-up of a source address.

    It begins with the first day of `warmup.source_recipients_per_day`, for each provider.
    """
    return _answer(request, await sources.warm_up(ctx, request.path["name"]))


async def end_warm_up(ctx: context.Context, request: routing.Request) -> routing.Response:
    """End the warm-up of a source address."""
    return _answer(request, await sources.end_warm_up(ctx, request.path["name"]))


def _route(endpoint: str, handler: routing.Handler[context.Context], **options: Any) -> resource.OperatorRoute:
    responses = {200: SourceResponse}
    return resource.operator_route(
        RESOURCE, endpoint, handler, responses=responses, errors=(errors.Conflict,), **options
    )


ROUTES: Final = (
    resource.operator_route(RESOURCE, "GET /v1/operator/sources", index, responses={200: Sources}),
    resource.operator_route(RESOURCE, "GET /v1/operator/sources/{name}", show, responses={200: SourceResponse}),
    _route("POST /v1/operator/sources/{name}/pause", pause, body=SourcePause),
    _route("POST /v1/operator/sources/{name}/resume", resume, body=SourceResume),
    _route("POST /v1/operator/sources/{name}/drain", drain, body=SourceDrain),
    _route("POST /v1/operator/sources/{name}/warm-up", warm_up),
    _route("DELETE /v1/operator/sources/{name}/warm-up", end_warm_up),
)
