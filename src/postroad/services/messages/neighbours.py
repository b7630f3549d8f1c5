"""The messages before and after one in the results of a search.

Lists are read from the newest to the oldest, so the next older message is the first of a page. The next newer one is
the last of a page that ends with this message: a period after it is searched for that has a match, and few enough that
all of them fit on the page. Every probe is a page, and their number is bounded.
"""

import dataclasses
import time
from dataclasses import dataclass
from typing import Final

from postroad.model import cursors, identifiers, times
from postroad.services import context
from postroad.services.messages import lookup

FIRST_PERIOD: Final = 10 * times.SECOND
GROWTH: Final = 10
PROBE_MESSAGES: Final = 100
# Ten seconds grow to three years in eight steps; the others narrow down where much was sent at once.
MAX_PROBES: Final = 20
# A person waits for the page; a probe takes a tenth of a second, and longer where messages have many recipients.
MAX_SECONDS: Final = 2.0


@dataclass(frozen=True, slots=True)
class Neighbours:
    """The ids of the next newer and the next older message; None where there is none, or none was found soon enough."""

    newer: str | None
    older: str | None


async def find(ctx: context.Context, account_id: str, filters: lookup.Filters, message_id: str) -> Neighbours:
    """The neighbours of a message of the account."""
    page = await lookup.page(ctx, account_id, filters, limit=1, cursor=message_id)
    older = page.messages[0].id if page.messages else None
    return Neighbours(await _newer(ctx, account_id, filters, message_id), older)


async def _newer(ctx: context.Context, account_id: str, filters: lookup.Filters, message_id: str) -> str | None:
    at = cursors.time_of(message_id, identifiers.MESSAGE)
    end = min(ctx.clock() + times.SECOND, filters.before or ctx.clock() + times.SECOND)
    # No match follows within `empty`; within `crowded` there are too many to see which is the first.
    empty, crowded, period = 0, None, FIRST_PERIOD
    nearest: str | None = None
    ends_at = time.monotonic() + MAX_SECONDS
    for probe in range(MAX_PROBES):
        if time.monotonic() > ends_at:
            return None
        within = dataclasses.replace(filters, after=max(at, filters.after or 0), before=min(at + period, end))
        page = await lookup.page(ctx, account_id, within, limit=PROBE_MESSAGES, cursor=None)
        following = [one.id for one in page.messages if one.id > message_id]
        if page.next_cursor is not None:
            nearest = following[-1] if following else None
            crowded = cursors.time_of(nearest, identifiers.MESSAGE) - at if nearest else period
        elif following:
            return following[-1]
        elif at + period >= end or period == crowded:
            return nearest
        else:
            empty = period
        if crowded is None:
            period *= GROWTH
        else:
            # In turn: a page nearer, which is enough for a few hundred at once, and half of the way.
            period = crowded if probe % 2 else (empty + crowded) // 2
    return None
