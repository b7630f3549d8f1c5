"""Partitions of mail, on PostgreSQL: a new one begins in time, and one whose mail has expired is dropped.

Content and messages have partitions of their own, each as long as an eighth of its retention period, so that few are
needed, and mail is kept at most that much longer. The rest is deleted row by row (`retention.py`): mail of partitions
that could not be dropped, for example because a backup is being made or too much of it is scheduled.
"""

import functools
from collections.abc import Sequence
from typing import Final

import msgspec

from postroad import config, context
from postroad.model.units import identifiers, times
from postroad.storage.operations import partitions

PARTS: Final = 8
# The next partition exists so long before it is needed.
AHEAD: Final = times.DAY
# When mail is stored in the partition that is to end, all of it is read first. Until that has ended, mail is refused
# from its end on.
FIRST_LENGTH: Final = 7 * times.DAY
# What a partition has for its drop, before its mail is deleted row by row.
DROP_DAYS: Final = 2


class TooMuchLateMail(Exception):
    """A partition is not dropped, because all mail would wait while the mail that is kept is copied."""


class Group(msgspec.Struct, frozen=True):
    """Tables whose partitions begin and end together, and the days for which their rows are kept."""

    tables: Sequence[str]
    days: int

    @property
    def length(self) -> int:
        return -(-self.days // PARTS) * times.DAY

    @property
    def grace(self) -> int:
        """How long after its retention period mail is deleted row by row, if its partition is still there."""
        return self.length + DROP_DAYS * times.DAY


class Window(msgspec.Struct, frozen=True):
    """Between which times mail has ended that is to be deleted row by row."""

    ended_after: int
    ended_before: int


def content(settings: config.Settings) -> Group:
    return Group(partitions.CONTENT, settings.retention.body_days)


def mail(settings: config.Settings) -> Group:
    return Group(partitions.MAIL, settings.retention.message_days)


async def window(ctx: context.Context, group: Group, *, now: int) -> Window:
    """What is left to delete row by row; without partitions, all that has expired."""
    before = now - group.days * times.DAY
    found = await _read(ctx, group)
    if found is None:
        return Window(0, before)
    # Nothing that ended before the bound is left: a message ends after it was accepted.
    dropped = found.dropped_before and identifiers.time_of(found.dropped_before, identifiers.MESSAGE)
    return Window(dropped or 0, before - group.grace)


async def keep(ctx: context.Context) -> int:
    """Begin new partitions and drop old ones; returns how many steps were done.

    A step that fails prevents no other. The first failure is raised at the end.
    """
    now = ctx.clock()
    groups = content(ctx.settings), mail(ctx.settings)
    if await _read(ctx, groups[0]) is None:
        return 0
    steps, failures = 0, []
    for step in (_remove_bound, functools.partial(_begin_next, now=now), functools.partial(_drop_expired, now=now)):
        for group in groups:
            try:
                steps += await step(ctx, group)
            except Exception as failure:  # noqa: BLE001 - the next step may succeed
                failures.append(failure)
    if failures:
        raise failures[0]
    return steps


async def _read(ctx: context.Context, group: Group) -> partitions.Partitions | None:
    async with ctx.store.reading() as tx:
        return await partitions.read(tx, group.tables)


async def _remove_bound(ctx: context.Context, group: Group) -> bool:
    """Undo `bound`, which refuses mail later; also that of a process that ended before it could."""
    async with ctx.store.transaction() as tx:
        is_bounded = await partitions.is_bounded(tx, group.tables)
        if is_bounded:
            await partitions.bound(tx, group.tables, before=None)
    return is_bounded


async def _begin_next(ctx: context.Context, group: Group, *, now: int) -> bool:
    found = await _read(ctx, group)
    newest = identifiers.time_of(found.bounds[-1], identifiers.MESSAGE) if found and found.bounds else 0
    if found is None or newest > now + AHEAD:
        return False
    if newest > now:
        await _extend(ctx, group, until=newest + group.length)
        return True
    until = now - now % times.DAY + FIRST_LENGTH
    try:
        async with ctx.store.transaction() as tx:
            await partitions.bound(tx, group.tables, before=identifiers.at(identifiers.MESSAGE, until))
        await _extend(ctx, group, until=until)
    finally:
        await _remove_bound(ctx, group)
    return True


async def _extend(ctx: context.Context, group: Group, *, until: int) -> None:
    async with ctx.store.transaction() as tx:
        await partitions.extend(tx, group.tables, until=identifiers.at(identifiers.MESSAGE, until))


async def _drop_expired(ctx: context.Context, group: Group, *, now: int) -> bool:
    found = await _read(ctx, group)
    if found is None:
        return False
    before = now - group.days * times.DAY
    limit = identifiers.at(identifiers.MESSAGE, before)
    contents = content(ctx.settings)
    if group != contents and (dropped := await _read(ctx, contents)):
        # Not beyond the content: without its message, it would never be found again.
        limit = min(limit, dropped.dropped_before)
    due = [bound for bound in found.bounds if bound <= limit]
    # If too much of the newest is late, an older one may have less.
    for bound in reversed(due):
        async with ctx.store.transaction() as tx:
            if await partitions.expire(tx, group.tables, before=bound, ended_after=before):
                return True
    if due:
        raise TooMuchLateMail(
            f"too much mail in expired partitions of {group.tables[0]} is not final or ended late: what has expired is "
            f"deleted row by row after {DROP_DAYS} days"
        )
    return False
