"""`/healthz`, `/readyz` and `/metrics`: for load balancers and Prometheus (docs/metrics.md)."""

import asyncio
import hmac
import ipaddress
from collections.abc import Awaitable, Callable
from typing import Final, Literal

import msgspec

from postroad import context, errors
from postroad.protocol.text import http_values
from postroad.storage.people import credentials
from postroad.telemetry import metrics
from postroad.web import routing

# Load balancers wait a few seconds; a database that takes longer than this for one row is not ready.
STORE_TIMEOUT_SECONDS: Final = 2.0


class Alive(msgspec.Struct, frozen=True):
    """The process is alive."""

    status: Literal["ok"]
    request_id: str


class Ready(msgspec.Struct, frozen=True):
    """The service accepts requests."""

    status: Literal["ready"]
    request_id: str


def health_routes(is_draining: Callable[[], bool]) -> tuple[routing.Route[context.Context], ...]:
    """The routes. `is_draining` tells whether the service is stopping, or is about to stop."""

    async def ready(ctx: context.Context, request: routing.Request) -> routing.Response:
        if is_draining():
            raise errors.ServiceUnavailable("the service is stopping", retry_after=5)
        await _check_store(ctx)
        return routing.Response(200, Ready("ready", request.id))

    return (
        routing.Route(
            method="GET",
            path="/healthz",
            handler=alive,
            summary="Check that the process is alive",
            description="Asks nothing of the database: restart a process that does not answer.",
            tag="Health",
            permission=None,
            responses={200: Alive},
            is_probe=True,
        ),
        routing.Route(
            method="GET",
            path="/readyz",
            handler=ready,
            summary="Check that the service accepts requests",
            description="503 while the service is stopping, or when the database does not respond.",
            tag="Health",
            permission=None,
            responses={200: Ready},
            errors=(errors.ServiceUnavailable,),
            is_probe=True,
        ),
    )


async def alive(_ctx: context.Context, request: routing.Request) -> routing.Response:
    """The liveness response."""
    return routing.Response(200, Alive("ok", request.id))


async def _check_store(ctx: context.Context) -> None:
    try:
        async with asyncio.timeout(STORE_TIMEOUT_SECONDS):
            async with ctx.store.reading() as tx:
                await credentials.access_version(tx)
            # A database that can be read may refuse writes, for example when the disk is full. This probe runs only
            # after a failed write, and is the smallest write there is; otherwise it costs each process one lookup.
            await ctx.accept_commits.recover(credentials.bump_access_version)
    except (errors.TemporaryFailure, TimeoutError):
        raise errors.ServiceUnavailable("the database did not respond in time", retry_after=5) from None


# `/metrics`: the service's metrics for Prometheus (docs/metrics.md).
#
# Local clients may read it; others need `metrics.token` and otherwise get 404. A request that a proxy has forwarded
# counts as remote, whatever its address. Not every proxy says that it has forwarded something, so where one is in
# front, nobody counts as local.

# Header fields of proxies: RFC 7239, RFC 9110 section 7.6.3, and the older names.
PROXY_FIELDS: Final = (
    b"forwarded",
    b"via",
    b"x-forwarded-for",
    b"x-forwarded-host",
    b"x-forwarded-proto",
    b"x-real-ip",
)


def metrics_routes(
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
        shown = http_values.parse_authorization(
            (request.headers.get(http_values.AUTHORIZATION) or b"").decode("latin-1")
        )
    except (http_values.AuthorizationError, errors.InvalidRequest):
        return False
    return isinstance(shown, http_values.Bearer) and hmac.compare_digest(shown.token, token)
