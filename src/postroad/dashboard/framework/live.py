"""`/live`: notifies open pages of changes, as server-sent events (HTML standard, section 9.2).

A stream reads the account's change fingerprint once a second and sends `changed` when it differs; the page then
reloads its parts, as it also does when a stream opens. The streams of an account in a process share one read. A stream
ends with the session, the role or the view, with the service, and after STREAM_SECONDS: the browser then reconnects by
itself.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Final

from postroad import context, errors
from postroad.concurrency import caches
from postroad.dashboard.framework import requests
from postroad.model.people import callers
from postroad.services import usage_limits
from postroad.services.accounts import statistics
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
# Cached fingerprints; an evicted one costs a read.
MAX_ACCOUNTS: Final = 1_000
KIND: Final = "text/event-stream"
# Without this, nginx buffers the stream.
UNBUFFERED: Final = ("X-Accel-Buffering", "no")
RETRY_FIELD: Final = b"retry: 3000\n\n"
CHANGED: Final = b"event: changed\ndata:\n\n"
# A comment after every read: only a write reveals that the browser has gone and frees the stream.
KEEP_ALIVE: Final = b":\n\n"


class FingerprintCache:
    def __init__(self) -> None:
        self._seen: caches.LruCache[str, tuple[float, bytes]] = caches.LruCache(MAX_ACCOUNTS)

    async def of(self, ctx: context.Context, account_id: str) -> bytes:
        """The fingerprint, at most a second old."""
        seen = self._seen.get(account_id)
        if seen is not None and time.monotonic() - seen[0] < POLL_SECONDS:
            return seen[1]
        fingerprint = await statistics.change_fingerprint(ctx, account_id)
        self._seen.put(account_id, (time.monotonic(), fingerprint))
        return fingerprint


# What the pages of a request depend on, in short.
Fingerprint = Callable[[requests.PageRequest], Awaitable[bytes]]


def stream(request: requests.PageRequest, read: Fingerprint) -> routing.Response:
    return routing.Response(200, _stream(request, read), headers=(UNBUFFERED,), content_type=KIND)


def routes() -> tuple[requests.SiteRoute, ...]:
    fingerprints = FingerprintCache()

    async def read(request: requests.PageRequest) -> bytes:
        return await fingerprints.of(request.ctx, request.account_id)

    async def show(request: requests.PageRequest) -> routing.Response:
        return stream(request, read)

    return (requests.get("/live", show),)


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
        # Read before the stream opens, so that the page cannot read anything older.
        before = await read(request)
        yield RETRY_FIELD
        while time.monotonic() < end and not request.site.is_stopping():
            await asyncio.sleep(POLL_SECONDS)
            try:
                if not await _is_permitted(request):
                    return
                fingerprint = await read(request)
            except errors.PostroadError:
                # The session ended or the store is unavailable: the browser reconnects and gets the error.
                return
            yield CHANGED if fingerprint != before else KEEP_ALIVE
            before = fingerprint
