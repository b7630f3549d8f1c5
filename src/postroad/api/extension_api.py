"""The HTTP of extensions: an API below a prefix with its own authentication and errors, and routes beside our own API.

An API often is that of another service, with the paths of its documentation; the prefix is added when the application
is built. It translates requests, responses and errors and decides nothing: everything goes through the same services as
our own API, with the same keys, scopes, rates and limits. Handlers respond with `respond`, because these bodies have no
`request_id`; the header field has it, as everywhere.
"""

import collections
import dataclasses
import functools
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

import msgspec

from postroad import context, errors
from postroad.concurrency import fairness
from postroad.mail.accept import submit, submit_batch, transaction, validation
from postroad.model.mail import send_request, statuses
from postroad.model.people import callers
from postroad.network.http import http_server
from postroad.protocol.mime import header_fields
from postroad.protocol.text import http_values
from postroad.services.people import authentication, step_up
from postroad.telemetry import logs
from postroad.web import application, request_reader, reverse_proxies, routing, validation_errors

Route = routing.Route[context.Context]
# The value of `Authorization` that the header fields stand for; raises `MissingKey`.
Credential = Callable[[routing.Headers], str]
# The status and the body of an error with this message.
ErrorBody = Callable[[errors.PostroadError, str], tuple[int, msgspec.Struct]]
# How the errors of our own authentication begin.
_AUTHORIZATION: Final = "Authorization: "
_encoder: Final = msgspec.json.Encoder()


class MissingKey(errors.Unauthorized):
    """The request has no API key."""


class RestrictedKey(errors.Unauthorized):
    """The API key does not have the scope of the route."""


class HttpApi(msgspec.Struct, frozen=True, kw_only=True):
    """An API. `service` is whose it is, for errors about what it has and we do not."""

    service: str
    prefix: str
    # The header field of the API key, which errors name.
    key_field: str = "Authorization"
    # The header fields that may have it, as the listener reads them.
    key_headers: tuple[bytes, ...] = (http_values.AUTHORIZATION,)
    routes: tuple[Route, ...]
    credential: Credential
    error_body: ErrorBody

    @property
    def prefixed(self) -> tuple[Route, ...]:
        """The routes with the prefix."""
        return tuple(dataclasses.replace(route, path=self.prefix + route.path) for route in self.routes)

    @property
    def own_headers(self) -> tuple[bytes, ...]:
        """A request with one of these is for this API whatever its path is: some packages accept a host but no path."""
        return tuple(name for name in self.key_headers if name != http_values.AUTHORIZATION)


def route(endpoint: str, handler: routing.Handler[context.Context], **options: Any) -> Route:
    """The route of a method and path. By default GET requires `VIEW` and any other method `CHANGE`."""
    method, path = endpoint.split()
    options.setdefault("permission", callers.Permission.VIEW if method == "GET" else callers.Permission.CHANGE)
    # Not in our OpenAPI document: the other service documents it.
    return routing.Route(method=method, path=path, handler=handler, summary="", tag="", responses={}, **options)


def respond(
    body: object, *, status: int = 200, headers: tuple[tuple[str, str], ...] = (), is_accepted: bool = False
) -> routing.Response:
    """A response with a JSON body."""
    return routing.Response(status, _encoder.encode(body), headers=headers, is_accepted=is_accepted)


async def refuse(ctx: context.Context, request: routing.Request) -> routing.Response:
    """The handler of a path that would otherwise be taken for an id; the error names it as any unknown path."""
    del ctx, request
    raise errors.UnknownPath(routing.UNKNOWN_PATH)


def idempotency_key(request: routing.Request) -> str:
    """The client's idempotency key, or a new one."""
    return request.idempotency_key or request.id


def unsupported(what: str, service: str) -> str:
    """The message about something that the other service has and we do not."""
    return f"{what}: Postroad does not support this part of the {service} API; see docs/compatibility.md"


async def render_error(
    api: HttpApi, error: errors.PostroadError, refused: routing.RefusedRequest
) -> routing.EncodedResponse:
    """The response to a refused request in the format of the other service. An unknown path or method is named."""
    message = error.message
    if isinstance(error, errors.Unauthorized) and message.startswith(_AUTHORIZATION):
        message = f"{api.key_field}: {message.removeprefix(_AUTHORIZATION)}"
    if isinstance(error, errors.UnknownPath | errors.MethodNotAllowed):
        path = refused.path.decode("latin-1").removeprefix(api.prefix)
        message = unsupported(validation_errors.printable(f"{refused.method} {path}"), api.service)
    return routing.refusal(error, request_id=refused.request_id, shape=api.error_body(error, message))


def build_application(
    ctx: context.Context,
    api: HttpApi,
    *,
    log: logs.Logger,
    require: application.Require = authentication.require,
    proxies: reverse_proxies.Proxies | None = None,
    large_body_slots: request_reader.LargeBodySlots | None = None,
    delays: fairness.ResponseDelays | None = None,
) -> application.Application[context.Context]:
    """The application of an API.

    It is for API keys. A person's token must be confirmed for all of it: keys, secrets and exports are among its
    routes.
    """
    offered = api.prefixed
    labels = frozenset(f"{route.method} {route.path}" for route in offered)

    def authenticate(
        asked: context.Context, headers: routing.Headers, *, client_address: str
    ) -> callers.Caller | Awaitable[callers.Caller]:
        try:
            credential = api.credential(headers)
        except errors.InvalidRequest as problem:  # a repeated header field
            raise errors.Unauthorized(problem.message) from None
        return authentication.find_caller(asked, credential, client_address=client_address)

    def require_scope(
        who: callers.Caller, permission: callers.Permission, *, scope: callers.Scope | None, client_address: str
    ) -> None:
        try:
            require(who, permission, scope=scope, client_address=client_address)
        except errors.Unauthorized as refusal:
            raise RestrictedKey(refusal.message) from None

    return application.Application(
        ctx,
        offered,
        authenticate=authenticate,
        require=require_scope,
        bind_actor=context.acting_as,
        confirmation=application.Confirmation(labels, step_up.refuse_unconfirmed),
        render_error=functools.partial(render_error, api),
        proxies=proxies,
        clock=ctx.clock,
        entropy=ctx.entropy,
        log=log,
        counted=ctx.metrics,
        large_body_slots=large_body_slots,
        threads=ctx.threads,
        delays=delays,
        note=ctx.request_log.note,
    )


class Mount(msgspec.Struct, frozen=True):
    """What routes beside our own API are made with."""

    # The application that serves them, once it is built.
    get_app: Callable[[], http_server.Application]
    require: application.Require
    public_url: str


# How APIs of other services send: through `submit`, with the rate-limit header fields of `POST /emails`.
#
# Their packages put fields into the headers of a message that Postroad writes itself, so these are left out; our own
# API refuses them.

Fields = tuple[tuple[str, str], ...]
Given = TypeVar("Given")
Read = TypeVar("Read")
# What packages add that make a whole message first.
GENERATED_HEADERS: Final = frozenset(
    "date message-id mime-version content-type content-transfer-encoding content-disposition content-id".split()
)


def custom_headers(headers: Mapping[str, Any]) -> dict[str, Any]:
    """The headers that are the caller's own; its package adds the others, and Postroad writes them.

    All of them count, and what is left out has to be a header too.
    """
    validation.check_header_count(len(headers))
    custom: dict[str, Any] = {}
    for name, value in headers.items():
        if name.lower() in GENERATED_HEADERS:
            _check_generated(name, value)
        else:
            custom[name] = value
    return custom


def _check_generated(name: str, value: object) -> None:
    if not isinstance(value, str):
        raise errors.InvalidRequest(f"headers[{name!r}]: must be a string")
    try:
        header_fields.check_value(value)
    except header_fields.HeaderError as problem:
        raise errors.InvalidRequest(f"headers[{name!r}]: {problem}") from None


async def read_each(
    ctx: context.Context, account_id: str, items: Sequence[Given], read: Callable[[int, Given], Read]
) -> list[Read]:
    """The items of a batch, each read with its place: of all but the smallest batches in turns of a thread."""
    done: list[Read] = []
    left = collections.deque(enumerate(items))
    while left:
        work = functools.partial(_read_some, left, done, read)
        await ctx.threads.run(account_id, work) if len(items) > submit_batch.INLINE_ITEMS else work()
    return done


def _read_some(
    left: collections.deque[tuple[int, Given]], done: list[Read], read: Callable[[int, Given], Read]
) -> None:
    ends_at = time.monotonic() + submit_batch.TURN_SECONDS
    while left and time.monotonic() < ends_at:
        done.append(read(*left.popleft()))


async def send(
    ctx: context.Context, request: routing.Request, message: send_request.SendRequest
) -> tuple[transaction.Accepted, Fields]:
    """Accept a message; returns the header fields of the response too."""
    key = idempotency_key(request)
    accepted = await submit.submit(
        ctx, request.caller, message, request_id=request.id, source=statuses.Source.API, key=key
    )
    return accepted, submit.rate_fields(ctx, request.caller, accepted)


async def send_batch(
    ctx: context.Context,
    request: routing.Request,
    messages: tuple[send_request.SendRequest, ...],
    *,
    all_or_nothing: bool,
) -> tuple[transaction.Accepted, Fields]:
    """Accept several messages; returns the header fields of the response too."""
    batch = send_request.BatchRequest(emails=messages, all_or_nothing=all_or_nothing)
    key = idempotency_key(request)
    accepted = await submit_batch.submit_batch(ctx, request.caller, batch, request_id=request.id, key=key)
    return accepted, submit.rate_fields(ctx, request.caller, accepted)
