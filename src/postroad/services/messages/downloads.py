"""Downloads: a file streamed to its caller.

A slot is held from before the file is read until the last part is sent. A caller that requests much and reads nothing
makes the process hold as many files as there are slots, not as many as there are connections. Small files are sent
whole. The listener disconnects a caller that does not read at all (`write_seconds`); one that reads very slowly is
ended here.
"""

import contextlib
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final

from postroad import errors
from postroad.services import context, work_limits
from postroad.services.messages import previews

Parts = AsyncGenerator[bytes, None]
Read = Callable[[], Awaitable[previews.Download]]

# A file has at most 10 MiB, and is held while it is downloaded.
DOWNLOADS: Final = work_limits.WorkLimit("downloads", per_account=8, per_process=32, retry_seconds=5)
# No larger than our own pages may be.
SMALL_OCTETS: Final = 256 * 1024
# A connection's buffers hold about as much again.
PART_OCTETS: Final = 64 * 1024
# 10 MiB at 140 kbit/s, slower than any usual connection.
MAX_SECONDS: Final = 600.0


@dataclass(frozen=True, slots=True)
class StartedDownload:
    """A download in progress, in non-empty parts unless it is small."""

    filename: str
    content_type: str
    size: int
    body: bytes | Parts = field(repr=False)


async def begin(ctx: context.Context, account_id: str, read: Read, *, seconds: float = MAX_SECONDS) -> StartedDownload:
    """Read a file and stream it. Raises RateLimited when no slot is free, and whatever `read` raises."""
    end = time.monotonic() + seconds
    with contextlib.ExitStack() as place:
        place.enter_context(work_limits.acquire(ctx, DOWNLOADS, account_id))
        file = await read()
        size = len(file.body)
        if size <= SMALL_OCTETS:
            return StartedDownload(file.filename, file.content_type, size, file.body)
        parts = _parts(file.body, place=place.pop_all(), end=end)
        # Only a started generator can be closed: from here on it releases the slot.
        await anext(parts)
        return StartedDownload(file.filename, file.content_type, size, parts)


async def _parts(body: bytes, *, place: contextlib.ExitStack, end: float) -> Parts:
    with place:
        yield b""  # to `begin` alone
        for at in range(0, len(body), PART_OCTETS):
            if time.monotonic() >= end:
                raise errors.ServiceUnavailable("the download was read too slowly", retry_after=DOWNLOADS.retry_seconds)
            yield body[at : at + PART_OCTETS]
