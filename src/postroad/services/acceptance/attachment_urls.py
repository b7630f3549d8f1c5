"""Files that a sender gives by URL: fetched through the SSRF guard of webhooks, within bounds of time and size.

All files of a request share both bounds, and a slot among those of its account.
"""

import contextlib
import time
from collections.abc import AsyncIterator
from typing import Final

from postroad import errors
from postroad.model import limits
from postroad.services import context, work_limits

# A file of 10 MiB at 8 Mbit/s. A client waits longer for its response.
MAX_SECONDS: Final = 12.0
FETCHES: Final = work_limits.WorkLimit("attachments by URL", per_account=4, per_process=16, retry_seconds=5)


class AttachmentFetcher:
    """Fetches the files of one request, at most as much as one message may have."""

    def __init__(self, ctx: context.Context) -> None:
        self._ctx = ctx
        self._ends_at = time.monotonic() + MAX_SECONDS
        self._bytes_left = limits.MIME_BYTES

    async def fetch(self, field: str, url: str) -> bytes:
        """The file at a URL. Raises InvalidRequest, which names the field and says why there is none."""
        seconds = max(0.0, self._ends_at - time.monotonic())
        try:
            content = await self._ctx.webhook_client.fetch(url, max_bytes=self._bytes_left, seconds=seconds)
        except errors.InvalidRequest as refusal:
            raise errors.InvalidRequest(f"{field}: could not be fetched: {refusal.message}") from None
        self._bytes_left -= len(content)
        return content


@contextlib.asynccontextmanager
async def fetching(ctx: context.Context, account_id: str) -> AsyncIterator[AttachmentFetcher]:
    """Hold a slot of the account. Raises RateLimited when there is none."""
    with work_limits.acquire(ctx, FETCHES, account_id):
        yield AttachmentFetcher(ctx)
