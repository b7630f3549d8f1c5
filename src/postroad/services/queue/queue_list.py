"""The queued recipients of all accounts, in pages that each examine a bounded number of rows."""

from typing import Final

import msgspec

from postroad import errors
from postroad.model import identifiers
from postroad.services import context
from postroad.services.queue import conditions, inspection
from postroad.storage import queue, queue_walks

# Some tens of milliseconds.
MAX_EXAMINED: Final = 10_000
_KINDS: Final = (identifiers.ACCOUNT, identifiers.MESSAGE, identifiers.RECIPIENT)


class Page(msgspec.Struct, frozen=True):
    """Recipients, and the cursor to continue with; there may be more although there are few."""

    entries: list[inspection.QueueEntry]
    next_cursor: str | None


async def page(
    ctx: context.Context, chosen: queue_walks.Selection, *, state: str, cursor: str | None, limit: int
) -> Page:
    """A page in order of account and message."""
    after = queue_walks.START if cursor is None else _key(cursor)
    now = ctx.clock()
    async with ctx.store.scanning() as tx:
        rows, place = await queue_walks.page(tx, chosen, state=state, after=after, examined=MAX_EXAMINED, limit=limit)
        current = await conditions.read(ctx, tx, now=now)
    entries = [inspection.line(ctx, row, current, now=now) for row in rows]
    return Page(entries, None if place is None else ".".join(place))


def _key(cursor: str) -> queue.Key:
    parts = cursor.split(".")
    if len(parts) != len(_KINDS) or not all(map(identifiers.is_identifier, parts, _KINDS)):
        raise errors.InvalidRequest("cursor: is not a cursor of this list; use the cursor of the previous page")
    account_id, message_id, recipient_id = parts
    return account_id, message_id, recipient_id
