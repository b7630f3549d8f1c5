"""Remote images of a message, fetched by the service when a person asks for them.

Whoever serves an image learns that the message was looked at, and nothing about the reader: the request has the
service's address, and no cookie, no referrer and no name of a browser. The images become part of the document (data
URIs), so that the policy of the frame, which loads nothing, need not change, and only images that the message names can
be fetched. URLs and addresses pass the SSRF guard of webhooks, also after a redirect.
"""

import asyncio
import time
from typing import Final
from urllib import parse

from postroad import errors
from postroad.protocol import html_preview
from postroad.services import context, work_limits
from postroad.services.messages import previews

# More than a newsletter has; the rest is not shown.
MAX_IMAGES: Final = 40
# For all images together: a person waits.
MAX_SECONDS: Final = 10.0
MAX_CONCURRENT: Final = 6
# As most links for tracking and content delivery networks need.
MAX_REDIRECTS: Final = 3
# Some 20 MiB are in memory for each.
FETCHES: Final = work_limits.WorkLimit("remote images", per_account=2, per_process=6, retry_seconds=5)
# Some hosts refuse requests without a User-Agent. It is the same for all installations and all readers.
HEADERS: Final = (
    ("User-Agent", "Mozilla/5.0 (compatible; ImageProxy)"),
    ("Accept", "image/webp,image/png,image/jpeg,image/gif"),
)
# Browsers encode other characters; what is encoded already stays.
_SAFE: Final = "%/:?&=~+!$,;'@()*[]"


def urls_in(html: str) -> list[str]:
    """The images that can be fetched, up to the limit."""
    return html_preview.remote_images(html)[:MAX_IMAGES]


async def fetch(ctx: context.Context, account_id: str, urls: list[str]) -> dict[str, bytes]:
    """The images that could be fetched, by URL. Raises RateLimited when the account has no free slot."""
    fetcher = _Fetcher(ctx, account_id)
    with work_limits.acquire(ctx, FETCHES, account_id):
        async with asyncio.TaskGroup() as group:
            for _ in range(MAX_CONCURRENT):
                group.create_task(fetcher.work(urls))
    return fetcher.images


class _Fetcher:
    """Fetches images, several at once, within limits that they share."""

    def __init__(self, ctx: context.Context, account_id: str) -> None:
        self._ctx = ctx
        self._rate = f"images {account_id}"
        self._next = 0
        self._ends_at = time.monotonic() + MAX_SECONDS
        self._octets_left = previews.IMAGES_OCTETS
        self.images: dict[str, bytes] = {}

    async def work(self, urls: list[str]) -> None:
        """Fetch the next image until there is none."""
        while self._next < len(urls) and self._octets_left > 0:
            url = urls[self._next]
            self._next += 1
            try:
                # Before it is fetched: the rate bounds what others see of us.
                self._ctx.rate_limiter.take(self._rate, now=self._ctx.clock())
                image = await self._fetch(url)
            except (errors.InvalidRequest, errors.RateLimited):
                continue
            self._octets_left -= len(image)
            self.images[url] = image

    async def _fetch(self, url: str) -> bytes:
        return await self._ctx.webhook_client.fetch(
            parse.quote(url.strip().partition("#")[0], safe=_SAFE),
            max_bytes=previews.IMAGE_OCTETS,
            seconds=max(0.0, self._ends_at - time.monotonic()),
            redirects=MAX_REDIRECTS,
            headers=HEADERS,
        )
