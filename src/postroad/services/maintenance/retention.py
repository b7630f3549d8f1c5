"""Retention: how long mail is kept after its final result, and the removal of older mail.

The content of a message is removed first, the message with its recipients and attempts later; test mail, which costs
nothing, is removed at once and sooner. Mail that is not final and the ledger are never removed. The work is done in
small transactions with pauses between them (`throttled_batches.py`). What one sweep does not reach follows with the
next one.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

import msgspec

from postroad.model import times
from postroad.services import context
from postroad.services.maintenance import partitions, throttled_batches
from postroad.storage import retention, space, store

# Each: twice for bodies, then for messages and test mail. With MAX_SHRINK_SECONDS, a sweep takes up to 22 seconds.
MAX_SECONDS: Final = 5.0
MAX_SHRINK_SECONDS: Final = 2.0


class Remove(Protocol):
    """Removes a batch of mail that ended between two times, and returns how many messages those are."""

    def __call__(self, tx: store.Transaction, /, *, ended_before: int, ended_after: int) -> Awaitable[int]: ...


class RemovalResult(msgspec.Struct, frozen=True):
    """How many messages were affected, and whether more may be left."""

    count: int
    has_more: bool


async def remove_bodies(ctx: context.Context, *, now: int) -> RemovalResult:
    """Remove expired contents, as far as the time permits."""
    ended = await partitions.window(ctx, partitions.content(ctx.settings), now=now)
    done = await _remove(ctx, retention.remove_bodies, ended)
    if done.has_more:
        return done
    # A message is removed after its content, which is not marked as removed if it was dropped with its partition.
    ended = await partitions.window(ctx, partitions.mail(ctx.settings), now=now)
    marked = await _remove(ctx, retention.remove_bodies, ended)
    return RemovalResult(done.count + marked.count, has_more=marked.has_more)


async def remove_messages(ctx: context.Context, *, now: int) -> RemovalResult:
    """Remove expired messages with everything that belongs to them."""
    ended = await partitions.window(ctx, partitions.mail(ctx.settings), now=now)
    return await _remove(ctx, retention.remove_messages, ended)


async def remove_test_mail(ctx: context.Context, *, now: int) -> RemovalResult:
    """Remove expired test messages with their content. Their partition, if they have one, stays much longer."""
    before = now - ctx.settings.retention.test_days * times.DAY

    async def batch(tx: store.Transaction) -> int:
        return await retention.remove_test_messages(tx, ended_before=before)

    return await _in_batches(ctx, batch, seconds=MAX_SECONDS)


async def _remove(ctx: context.Context, remove: Remove, ended: partitions.Window) -> RemovalResult:
    async def batch(tx: store.Transaction) -> int:
        return await remove(tx, ended_before=ended.ended_before, ended_after=ended.ended_after)

    return await _in_batches(ctx, batch, seconds=MAX_SECONDS)


async def return_space(ctx: context.Context) -> RemovalResult:
    """Return the space of what was removed to the file system; the count is that of steps."""
    return await _in_batches(ctx, space.shrink, seconds=MAX_SHRINK_SECONDS)


async def _in_batches(
    ctx: context.Context, work: Callable[[store.Transaction], Awaitable[int]], *, seconds: float
) -> RemovalResult:
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    total = 0
    while loop.time() < end:
        removed = await throttled_batches.run_batch(ctx, work)
        if removed == 0:
            return RemovalResult(total, has_more=False)
        total += removed
    return RemovalResult(total, has_more=True)
