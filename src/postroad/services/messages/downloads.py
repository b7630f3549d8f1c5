"""Downloads: a file on its way to whoever asked for it, in parts, as fast as they are taken.

A place is held from before the file is read from the store until the last part is taken. So whoever asks for much and
reads nothing makes the process hold as many files as there are places, and not as many as there are connections. What
is small is handed over whole. A caller that does not read at all is the listener's to end (`write_seconds`); one that
reads a little now and then is ended here.
"""

import contextlib
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final

from postroad import errors
from postroad.services import context, quota
from postroad.services.messages import previews

Parts = AsyncGenerator[bytes, None]
Read = Callable[[], Awaitable[previews.Download]]

# A file has 10 MiB at the most, and is held while somebody saves it.
DOWNLOADS: Final = quota.Quota("downloads", per_account=8, per_process=32, retry_seconds=5)
# No more than a page of ours may have.
SMALL_OCTETS: Final = 256 * 1024
# What a connection holds beside it is about as much again.
PART_OCTETS: Final = 64 * 1024
# 10 MiB at 140 kbit/s, which is slower than any line that people save files over.
MAX_SECONDS: Final = 600.0


@dataclass(frozen=True, slots=True)
class StartedDownload:
    """A file that is being handed over; in parts, none of them empty, unless it is small."""

    filename: str
    content_type: str
    size: int
    body: bytes | Parts = field(repr=False)


async def begin(ctx: context.Context, account_id: str, read: Read, *, seconds: float = MAX_SECONDS) -> StartedDownload:
    """Read a file and hand it over. RateLimited when there is no place; whatever `read` refuses is refused."""
    end = time.monotonic() + seconds
    with contextlib.ExitStack() as place:
        place.enter_context(quota.acquire(ctx, DOWNLOADS, account_id))
        file = await read()
        size = len(file.body)
        if size <= SMALL_OCTETS:
            return StartedDownload(file.filename, file.content_type, size, file.body)
        parts = _parts(file.body, place=place.pop_all(), end=end)
        # Only what has begun can be closed: from here on the place is theirs to give back.
        await anext(parts)
        return StartedDownload(file.filename, file.content_type, size, parts)


async def _parts(body: bytes, *, place: contextlib.ExitStack, end: float) -> Parts:
    with place:
        yield b""  # to `begin` alone
        for at in range(0, len(body), PART_OCTETS):
            if time.monotonic() >= end:
                raise errors.ServiceUnavailable(
                    "this download was taken too slowly", retry_after=DOWNLOADS.retry_seconds
                )
            yield body[at : at + PART_OCTETS]
