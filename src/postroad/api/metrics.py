"""`/metrics`: the service's metrics for Prometheus (docs/metrics.md).

Local clients may read it; others need `metrics.token` and otherwise get 404. A request that a proxy has forwarded
counts as remote, whatever its address. Not every proxy says that it has forwarded something, so where one is in front,
nobody counts as local.
"""

import hmac
import ipaddress
from collections.abc import Awaitable, Callable
from typing import Final

from postroad import errors
from postroad.protocol import authorization
from postroad.services import context
from postroad.telemetry import metrics
from postroad.web import routing

# Header fields of proxies: RFC 7239, RFC 9110 section 7.6.3, and the older names.
PROXY_FIELDS: Final = (
    b"forwarded",
    b"via",
    b"x-forwarded-for",
    b"x-forwarded-host",
    b"x-forwarded-proto",
    b"x-real-ip",
)


def routes(
    collect: Callable[[], Awaitable[bytes]], *, is_behind_proxy: bool
) -> tuple[routing.Route[context.Context], ...]:
    """The route. It is left out of the OpenAPI document because it is not part of the API."""

    async def show(ctx: context.Context, request: routing.Request) -> routing.Response:
        is_local = not is_behind_proxy and _is_local(request)
        if not (is_local or _has_token(request, ctx.settings.metrics.token)):
            raise errors.UnknownPath(routing.UNKNOWN_PATH)
        return routing.Response(200, await collect(), content_type=metrics.CONTENT_TYPE)

    return (
        routing.Route(
            method="GET",
            path="/metrics",
            handler=show,
            summary="Metrics in the Prometheus format",
            tag="Health",
            permission=None,
            responses={200: bytes},
            errors=(errors.NotFound,),
            content_type=metrics.CONTENT_TYPE,
            is_probe=True,
        ),
    )


def _is_local(request: routing.Request) -> bool:
    try:
        client = ipaddress.ip_address(request.client_address)
        if any(request.headers.get(name) is not None for name in PROXY_FIELDS):
            return False
    except (ValueError, errors.InvalidRequest):  # not an address, or a repeated proxy header
        return False
    mapped = client.ipv4_mapped if isinstance(client, ipaddress.IPv6Address) else None
    return (mapped or client).is_loopback


def _has_token(request: routing.Request, token: str) -> bool:
    if not token:
        return False
    try:
        shown = authorization.parse((request.headers.get(authorization.FIELD) or b"").decode("latin-1"))
    except (authorization.AuthorizationError, errors.InvalidRequest):
        return False
    return isinstance(shown, authorization.Bearer) and hmac.compare_digest(shown.token, token)
