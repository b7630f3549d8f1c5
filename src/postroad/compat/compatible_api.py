"""A compatible API: its routes, how its clients present the API key, and the format of its errors.

Routes have the paths of the other service's documentation; the prefix is added when the application is built.
Handlers respond with `respond`, because these bodies have no `request_id`; the header field has it, as everywhere.
"""

from collections.abc import Callable
from typing import Any, Final

import msgspec

from postroad import context, errors
from postroad.model.people import callers
from postroad.protocol.text import http_values
from postroad.web import routing, validation_errors

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


class CompatibleApi(msgspec.Struct, frozen=True, kw_only=True):
    """The API of another service."""

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


def render_error(
    api: CompatibleApi, error: errors.PostroadError, refused: routing.RefusedRequest
) -> routing.EncodedResponse:
    """The response to a refused request in the format of the other service. An unknown path or method is named."""
    message = error.message
    if isinstance(error, errors.Unauthorized) and message.startswith(_AUTHORIZATION):
        message = f"{api.key_field}: {message.removeprefix(_AUTHORIZATION)}"
    if isinstance(error, errors.UnknownPath | errors.MethodNotAllowed):
        path = refused.path.decode("latin-1").removeprefix(api.prefix)
        message = unsupported(validation_errors.printable(f"{refused.method} {path}"), api.service)
    return routing.refusal(error, request_id=refused.request_id, shape=api.error_body(error, message))
