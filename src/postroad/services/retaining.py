"""Retention: how long mail is kept after its final result, and the removal of what is older.

The content of a message goes first, the message with its recipients and attempts later. Mail that is not final is
never removed, and neither is the ledger. The work is done in small transactions with rests between them (`pacing.py`).
What one sweep does not reach goes with the next one.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from postroad.model import times
from postroad.services import context, pacing
from postroad.storage import retention, store

# For bodies and for messages, each. A sweep has 15 seconds for everything.
MOST_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class Removed:
    """How many messages were touched, and whether there may be more, for which there was no time."""

    count: int
    has_more: bool


async def remove_bodies(ctx: context.Context, *, now: int) -> Removed:
    """Remove the contents that are kept no longer, as far as the time goes."""
    before = now - ctx.settings.retention.body_days * times.DAY
    return await _in_parts(ctx, lambda tx: retention.remove_bodies(tx, ended_before=before))


async def remove_messages(ctx: context.Context, *, now: int) -> Removed:
    """The same for messages, with everything that belongs to them."""
    before = now - ctx.settings.retention.message_days * times.DAY
    return await _in_parts(ctx, lambda tx: retention.remove_messages(tx, ended_before=before))


async def _in_parts(ctx: context.Context, work: Callable[[store.Transaction], Awaitable[int]]) -> Removed:
    loop = asyncio.get_running_loop()
    end = loop.time() + MOST_SECONDS
    total = 0
    while loop.time() < end:
        removed = await pacing.part(ctx, work)
        if removed == 0:
            return Removed(total, has_more=False)
        total += removed
    return Removed(total, has_more=True)
