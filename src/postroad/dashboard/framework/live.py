"""`/live`: notifies open pages of changes, as server-sent events (HTML standard, section 9.2).

A stream begins with what the page says it shows: the fingerprint that was read before the page. It reads that of the
account once a second, and sends `changed` when it differs; the page then reloads its parts. A stream ends with the
session, the role or the view, with the service, and after STREAM_SECONDS: the page then opens another one.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Final

import msgspec

from postroad import errors
from postroad.dashboard.framework import requests
from postroad.model.people import callers
from postroad.services import usage_limits
from postroad.web import routing

POLL_SECONDS: Final = 1.0
# Shorter than the timeout of most proxies, long enough that reconnecting costs little.
STREAM_SECONDS: Final = 300
# Open pages of one account and of all accounts, in a process. Each holds a connection.
STREAMS: Final = usage_limits.WorkLimit("live updates", per_account=20, per_process=500, retry_seconds=10)
# So that one user cannot take all streams of the account.
STREAMS_PER_USER: Final = usage_limits.WorkLimit(
    "live updates of a user", per_account=10, per_process=500, retry_seconds=10
)
KIND: Final = "text/event-stream"
# Without this, nginx buffers the stream.
UNBUFFERED: Final = ("X-Accel-Buffering", "no")
CHANGED: Final = b"event: changed\ndata:\n\n"
# A comment after every read: only a write reveals that the browser has gone and frees the stream.
KEEP_ALIVE: Final = b":\n\n"


# What the pages of a request depend on, in short.
Fingerprint = Callable[[requests.PageRequest], Awaitable[str]]


class Query(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The fingerprint of what the page shows."""

    since: str | None = None


def stream(request: requests.PageRequest, read: Fingerprint) -> routing.Response:
    return routing.Response(200, _stream(request, read), headers=(UNBUFFERED,), content_type=KIND)


async def show(request: requests.PageRequest) -> routing.Response:
    return stream(request, requests.fingerprint)


ROUTES: Final = (requests.get("/live", show, query=Query),)


async def _is_permitted(request: requests.PageRequest) -> bool:
    """Whether the user still may what they could when the stream was opened: roles and views end."""
    who, _ = await requests.authenticate(request.site, request.ctx, request.http.headers)
    if request.view is None:
        return request.http.caller.permissions <= who.permissions
    return callers.Permission.OPERATE in who.permissions and request.ctx.clock() < request.view.ends_at


async def _stream(request: requests.PageRequest, read: Fingerprint) -> AsyncGenerator[bytes, None]:
    ctx, end = request.ctx, time.monotonic() + STREAM_SECONDS
    with (
        usage_limits.acquire(ctx, STREAMS, request.account_id),
        usage_limits.acquire(ctx, STREAMS_PER_USER, request.user.id),
    ):
        seen, fingerprint = request.query.since, await read(request)
        while time.monotonic() < end and not request.site.is_stopping():
            yield CHANGED if fingerprint != seen else KEEP_ALIVE
            await asyncio.sleep(POLL_SECONDS)
            try:
                if not await _is_permitted(request):
                    return
                seen, fingerprint = fingerprint, await read(request)
            except errors.PostroadError:
                # The session ended or the store is unavailable: the page reconnects and gets the error.
                return
