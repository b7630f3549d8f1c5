"""Files that a sender gives by URL: fetched through the SSRF guard of webhooks, within bounds of time and size.

All files of a request share both bounds, and a slot among those of its account as long as they are in memory. Files of
an account have the rate of its sends, counted before they are fetched: nobody can have us fetch without end by messages
that are then refused.
"""

import contextlib
import time
from collections.abc import AsyncIterator, Callable
from typing import Final

from postroad import context, errors
from postroad.mail.accept import submit
from postroad.model.mail import limits, send_request
from postroad.services import usage_limits

# A file of 10 MiB at 8 Mbit/s. A client waits longer for its response.
MAX_SECONDS: Final = 12.0
# As many as a batch has messages.
MAX_FILES: Final = send_request.MAX_EMAILS
# Their messages are in memory as large bodies are, until they are accepted: some 50 MiB each.
FETCHES: Final = usage_limits.WorkLimit("attachments by URL", per_account=3, per_process=8, retry_seconds=5)


class AttachmentFetcher:
    """Fetches the files of one request, at most as much as one message may have."""

    def __init__(self, ctx: context.Context, account_id: str) -> None:
        self._ctx = ctx
        self._account_id = account_id
        self._rate = f"files {account_id}"
        self._files_left = MAX_FILES
        self._ends_at = time.monotonic() + MAX_SECONDS
        self._bytes_left = limits.MIME_BYTES

    async def fetch(self, field: str, url: str, *, encode: Callable[[bytes], str]) -> str:
        """The file at a URL, encoded. Raises InvalidRequest, which names the field and says why not, or RateLimited."""
        if not self._files_left:
            raise errors.InvalidRequest(
                f"{field}: at most {MAX_FILES} files by URL in a request; send several requests"
            )
        self._files_left -= 1
        self._ctx.rate_limiter.take(self._rate, now=self._ctx.clock())
        seconds = max(0.0, self._ends_at - time.monotonic())
        try:
            content = await self._ctx.webhook_client.fetch(url, max_bytes=self._bytes_left, seconds=seconds)
        except errors.InvalidRequest as refusal:
            raise errors.InvalidRequest(f"{field}: could not be fetched: {refusal.message}") from None
        self._bytes_left -= len(content)
        is_large = len(content) > submit.INLINE_CHARACTERS
        return await self._ctx.threads.run(self._account_id, lambda: encode(content)) if is_large else encode(content)


@contextlib.asynccontextmanager
async def fetching(ctx: context.Context, account_id: str) -> AsyncIterator[AttachmentFetcher]:
    """Hold a slot of the account until the messages are sent. Raises RateLimited without one, and AccountSuspended."""
    with usage_limits.acquire(ctx, FETCHES, account_id):
        async with ctx.store.reading() as tx:
            await submit.refuse_suspended(tx, account_id)
        yield AttachmentFetcher(ctx, account_id)
