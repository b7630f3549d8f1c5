"""Where the credits of an account went: the ledger with its running balance, and recipients by day and by tag.

A message is one line: what it reserved. That it was spent later changes no balance, so that entry has no line of its
own; a refund does, and has one.
"""

import collections
import datetime as dt
from typing import Final

import msgspec

from postroad.model import cursors, identifiers, time_zones, times
from postroad.services import context
from postroad.storage import accounts, hourly_counts, ledger, store, usage

DAYS: Final = 30
MAX_TAGS: Final = 10
# Messages whose tags are counted, and entries whose sum is taken: some tens of milliseconds each.
MAX_MESSAGES: Final = 5_000
MAX_ENTRIES: Final = 100_000
# Entries that are read for a page, because some have no line.
ENTRIES_PER_PAGE: Final = 500


class Line(msgspec.Struct, frozen=True):
    """An entry that changed the available credits. `balance` is what was available after it, if known.

    `billing` is what became of a reservation, as long as its message exists.
    """

    entry: ledger.Entry
    balance: int | None
    billing: str | None


class Statement(msgspec.Struct, frozen=True):
    """Lines, newest first, and the cursor to continue with; there may be more although there are few lines."""

    lines: list[Line]
    next_cursor: str | None


class Usage(msgspec.Struct, frozen=True):
    """Recipients of each day, oldest first, and of the most used tags; `counted_from` if not all messages counted."""

    days: list[tuple[dt.date, int]]
    tags: list[usage.TagUsage]
    counted_from: int | None


async def statement(ctx: context.Context, account_id: str, *, before: str | None, limit: int) -> Statement:
    """A page of the ledger as lines, older than `before`; None for the newest."""
    place = cursors.end(identifiers.LEDGER)
    if before is not None:
        place = cursors.check("before", before, identifiers.LEDGER)
    async with ctx.store.scanning(account_id) as tx:
        balance = await _balance(tx, account_id, place)
        entries = await ledger.page(tx, account_id, before=place, limit=ENTRIES_PER_PAGE)
        chosen = [entry for entry in entries if entry.available][:limit]
        reserved = {entry.id: entry.message_id for entry in chosen if entry.kind == ledger.Kind.RESERVE}
        billing = await usage.billing(tx, account_id, filter(None, reserved.values()))
    lines = []
    for entry in chosen:
        lines.append(Line(entry, balance, billing.get(reserved.get(entry.id) or "")))
        balance = None if balance is None else balance - entry.available
    return Statement(lines, _next_cursor(entries, chosen, limit=limit))


def _next_cursor(entries: list[ledger.Entry], chosen: list[ledger.Entry], *, limit: int) -> str | None:
    """After the last line of a full page, or after everything that was read; None at the end of the ledger."""
    last = chosen[-1] if len(chosen) == limit else entries[-1] if entries else None
    if last is None or (last is entries[-1] and len(entries) < ENTRIES_PER_PAGE):
        return None
    return last.id


async def _balance(tx: store.Transaction, account_id: str, place: str) -> int | None:
    """What was available just before a place in the ledger, read from the newest on."""
    account = await accounts.by_id(tx, account_id)
    moved = await usage.moved_since(tx, account_id, cursor=place, limit=MAX_ENTRIES)
    return None if account is None or moved is None else account.available - moved


async def recent(ctx: context.Context, account_id: str, zone: dt.tzinfo) -> Usage:
    """The last days, as days of a time zone."""
    now = ctx.clock()
    today = time_zones.local(now, zone).date()
    first = today - dt.timedelta(days=DAYS - 1)
    from_hour = hourly_counts.hour_of(time_zones.moment_of(dt.datetime.combine(first, dt.time()), zone))
    async with ctx.store.scanning(account_id) as tx:
        sums = await hourly_counts.sums(
            tx, account_id, from_hour=from_hour, until_hour=hourly_counts.hour_of(now) + 1, hours=1
        )
        after = cursors.at(identifiers.MESSAGE, from_hour * times.HOUR)
        floor = await usage.floor(tx, account_id, after=after, examined=MAX_MESSAGES)
        tags = await usage.by_tag(tx, account_id, after=floor or after, limit=MAX_TAGS)
    by_day: collections.Counter[dt.date] = collections.Counter()
    for one in sums:
        by_day[time_zones.local((from_hour + one.bucket) * times.HOUR, zone).date()] += one.recipients
    days = [first + dt.timedelta(days=place) for place in range(DAYS)]
    counted_from = None if floor is None else cursors.time_of(floor, identifiers.MESSAGE)
    return Usage([(day, by_day[day]) for day in days], tags, counted_from)
