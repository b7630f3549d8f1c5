"""The messages before and after one in the results of a search."""

import asyncio
import contextlib
from typing import Final

import msgspec

from postroad.services import context
from postroad.services.messages import lookup

# Two directions take as long as one page.
EXAMINED: Final = lookup.MAX_EXAMINED // 2
# A person waits for the page. Usually it takes some hundredths of a second.
MAX_SECONDS: Final = 2.0


class Neighbours(msgspec.Struct, frozen=True):
    """The ids of the next newer and the next older message; None where there is none, or none was found soon enough."""

    newer: str | None = None
    older: str | None = None


async def find(ctx: context.Context, account_id: str, filters: lookup.Filters, message_id: str) -> Neighbours:
    """The neighbours of a message of the account."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(MAX_SECONDS):
            newer, older = [
                await lookup.neighbour(ctx, account_id, filters, message_id, is_newer=is_newer, examined=EXAMINED)
                for is_newer in (True, False)
            ]
            return Neighbours(newer, older)
    return Neighbours()
