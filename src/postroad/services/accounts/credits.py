"""Credits: added by the operator, listed in the ledger.

Reserving, settling and refunding credits belong to the mail that they pay for: see `mail/accept/transaction.py` and
`results/outcomes.py`.
"""

import collections
import datetime as dt
from collections.abc import AsyncGenerator, Sequence
from typing import Final

import msgspec

from postroad import context, errors
from postroad.model.units import identifiers, labels, times
from postroad.protocol.text import csv_rows
from postroad.services import audit_log
from postroad.services.accounts import account_registry as accounts
from postroad.storage.engine import store
from postroad.storage.mail import mail_counts
from postroad.storage.people import accounts as stored_accounts

NOTE_CHARACTERS: Final = 200
# JSON numbers are exact up to 2^53; no balance may leave that range.
MAX_CREDITS: Final = 2**53 - 1


async def add(ctx: context.Context, account_id: str, amount: int, note: str | None) -> stored_accounts.Account:
    """Add credits to an account; balance and ledger change together."""
    _refuse_where_off(ctx)
    if note is not None:
        labels.check_label("note", note, limit=NOTE_CHARACTERS)
    if not identifiers.is_identifier(account_id, identifiers.ACCOUNT):
        raise accounts.not_found()
    now = ctx.clock()
    async with ctx.store.transaction() as tx:
        account = (await stored_accounts.lock(tx, [account_id])).get(account_id)
        if account is None:
            raise accounts.not_found()
        if not 1 <= amount <= MAX_CREDITS - account.available - account.reserved:
            raise errors.InvalidRequest(f"amount: must be at least 1, and the balance at most {MAX_CREDITS}")
        entry = stored_accounts.LedgerEntry(
            id=ctx.new_id(identifiers.LEDGER, now=now),
            account_id=account_id,
            kind=stored_accounts.LedgerKind.GRANT,
            available=amount,
            reserved=0,
            note=note,
            created_at=now,
        )
        await stored_accounts.record_entries(tx, [entry])
        await audit_log.write(ctx, tx, account_id, "credits.added", str(amount), note or "")
    return msgspec.structs.replace(account, available=account.available + amount)


def needs_credits(ctx: context.Context, account: stored_accounts.Account) -> bool:
    return ctx.settings.credits.enabled and not account.unlimited


async def set_unlimited(ctx: context.Context, account_id: str, *, unlimited: bool) -> stored_accounts.Account:
    """Give an account unlimited credits, or charge it again. Mail that was accepted before keeps its price."""
    _refuse_where_off(ctx)
    async with ctx.store.transaction() as tx:
        account = await accounts.lock(tx, account_id)
        await stored_accounts.set_unlimited(tx, account_id, unlimited=unlimited)
        if bool(account.unlimited) != unlimited:
            action = "credits.unlimited" if unlimited else "credits.limited"
            await audit_log.write(ctx, tx, account_id, action, account.name)
    ctx.access_cache.invalidate()
    return msgspec.structs.replace(account, unlimited=int(unlimited))


def _refuse_where_off(ctx: context.Context) -> None:
    if not ctx.settings.credits.enabled:
        raise errors.Conflict(
            "credits are off (credits.enabled in the settings): mail costs nothing; nothing was changed"
        )


async def ledger(
    ctx: context.Context, account_id: str, before: str | None, limit: int
) -> list[stored_accounts.LedgerEntry]:
    """A page of ledger entries, newest first, older than `before`; None for the newest."""
    place = identifiers.before(before, identifiers.LEDGER)
    async with ctx.store.scanning(account_id) as tx:
        return await stored_accounts.entries(tx, account_id, before=place, limit=limit)


# The ledger as a CSV file (RFC 4180), oldest first, with the balances after each entry.
#
# A balance is the sum of the entries up to that row, so the file is consistent whatever is written meanwhile; the
# ledger is complete since the account's creation.

LEDGER_COLUMNS: Final = (
    "created_at",
    "kind",
    "available",
    "reserved",
    "available_after",
    "reserved_after",
    "message_id",
    "note",
    "id",
)
# Rows per query.
LEDGER_PAGE_ROWS: Final = 1_000


async def export_ledger(ctx: context.Context, account_id: str) -> AsyncGenerator[bytes, None]:
    balances = _Balances()
    rows: list[Sequence[str | int]] = [LEDGER_COLUMNS]
    after = ""
    while True:
        async with ctx.store.scanning(account_id) as tx:
            page = await stored_accounts.entries_from(tx, account_id, after=after, limit=LEDGER_PAGE_ROWS)
        rows.extend(balances.cells(entry) for entry in page)
        if rows:
            yield csv_rows.lines(rows)
        if len(page) < LEDGER_PAGE_ROWS:
            return
        rows, after = [], page[-1].id


class _Balances:
    def __init__(self) -> None:
        self._available = self._reserved = 0

    def cells(self, entry: stored_accounts.LedgerEntry) -> Sequence[str | int]:
        self._available += entry.available
        self._reserved += entry.reserved
        return (
            times.to_wire(entry.created_at),
            entry.kind,
            entry.available,
            entry.reserved,
            self._available,
            self._reserved,
            entry.message_id or "",
            entry.note or "",
            entry.id,
        )


# Where the credits of an account went: the ledger by day, each day with its running balance, and recipients by day and
# by tag.
#
# A message is one line: what it reserved. That it was spent later changes no balance, so that entry has no line of its
# own; a refund does, and has one.

USAGE_DAYS: Final = 30
MAX_TAGS: Final = 10
# Messages whose tags are counted, and entries whose sum is taken: some tens of milliseconds each.
MAX_MESSAGES: Final = 5_000
MAX_ENTRIES: Final = 100_000
# Entries that are read for a page, because some have no line.
ENTRIES_PER_PAGE: Final = 500
# Days begin with one of these, in every time zone.
_QUARTER_HOUR: Final = times.HOUR // 4


class Day(msgspec.Struct, frozen=True):
    """What happened to the available credits on a day. `balance` is what was available after it, if known.

    Unless `is_complete`, it has so many entries that only the newest are counted.
    """

    date: dt.date
    added: int = 0
    used: int = 0
    refunded: int = 0
    balance: int | None = None
    is_complete: bool = True


class Line(msgspec.Struct, frozen=True):
    """An entry that changed the available credits. `balance` is what was available after it, if known.

    `billing` is what became of a reservation, as long as its message exists.
    """

    entry: stored_accounts.LedgerEntry
    balance: int | None
    billing: str | None


class Usage(msgspec.Struct, frozen=True):
    """Recipients of each day, oldest first, and of the most used tags; `counted_from` if not all messages counted."""

    days: list[tuple[dt.date, int]]
    tags: list[stored_accounts.TagUsage]
    counted_from: int | None


class Days(msgspec.Struct, frozen=True):
    """Days, the newest first; before `until` there may be older ones, None at the end."""

    rows: list[Day]
    until: dt.date | None


async def days(ctx: context.Context, account_id: str, zone: dt.tzinfo, *, until: int | None = None, limit: int) -> Days:
    """The days of the ledger in a time zone, before a time; None for the newest. Days without a change are left out."""
    place = identifiers.end(identifiers.LEDGER) if until is None else identifiers.at(identifiers.LEDGER, until)
    async with ctx.store.scanning(account_id) as tx:
        balance = await _balance(tx, account_id, place)
        moved = await stored_accounts.moved_by_quarter_hour(tx, account_id, before=place, limit=MAX_ENTRIES)
    by_date: dict[dt.date, Day] = {}
    for quarter in moved:
        date = times.local(quarter.quarter * _QUARTER_HOUR, zone).date()
        day = by_date.get(date) or Day(date, balance=balance)
        by_date[date] = msgspec.structs.replace(
            day,
            added=day.added + quarter.added,
            used=day.used + quarter.used,
            refunded=day.refunded + quarter.refunded,
        )
        balance = None if balance is None else balance - quarter.added + quarter.used - quarter.refunded
    found = list(by_date.values())
    is_whole = sum(quarter.entries for quarter in moved) < MAX_ENTRIES
    if not is_whole:
        # The oldest entry may not be the first of its day.
        oldest = found.pop()
        found = found or [msgspec.structs.replace(oldest, is_complete=False)]
    rows = [day for day in found if day.added or day.used or day.refunded]
    if len(rows) > limit:
        return Days(rows[:limit], rows[limit - 1].date)
    return Days(rows, None if is_whole else found[-1].date)


async def statement(
    ctx: context.Context,
    account_id: str,
    *,
    since: int = 0,
    until: int | None = None,
    before: str | None,
    limit: int,
) -> identifiers.Page[Line]:
    """A page of the ledger as lines, of a period and older than `before`; None for the newest."""
    place = identifiers.before(before, identifiers.LEDGER)
    if until is not None:
        place = min(place, identifiers.at(identifiers.LEDGER, until))
    first = identifiers.at(identifiers.LEDGER, since)
    async with ctx.store.scanning(account_id) as tx:
        balance = await _balance(tx, account_id, place)
        newest = await stored_accounts.entries(tx, account_id, before=place, limit=ENTRIES_PER_PAGE)
        entries = [entry for entry in newest if entry.id >= first]
        chosen = [entry for entry in entries if entry.available][:limit]
        reserved = {entry.id: entry.message_id for entry in chosen if entry.kind == stored_accounts.LedgerKind.RESERVE}
        billing = await stored_accounts.billing(tx, account_id, filter(None, reserved.values()))
    lines = []
    for entry in chosen:
        lines.append(Line(entry, balance, billing.get(reserved.get(entry.id) or "")))
        balance = None if balance is None else balance - entry.available
    return identifiers.Page(lines, _next_cursor(entries, chosen, limit=limit))


def _next_cursor(
    entries: list[stored_accounts.LedgerEntry], chosen: list[stored_accounts.LedgerEntry], *, limit: int
) -> str | None:
    """After the last line of a full page, or after everything that was read; None at the end of the ledger."""
    last = chosen[-1] if len(chosen) == limit else entries[-1] if entries else None
    if last is None or (last is entries[-1] and len(entries) < ENTRIES_PER_PAGE):
        return None
    return last.id


async def _balance(tx: store.Transaction, account_id: str, place: str) -> int | None:
    """What was available just before a place in the ledger, read from the newest on."""
    account = await stored_accounts.by_id(tx, account_id)
    moved = await stored_accounts.moved_since(tx, account_id, cursor=place, limit=MAX_ENTRIES)
    return None if account is None or moved is None else account.available - moved


async def recent_usage(ctx: context.Context, account_id: str, zone: dt.tzinfo) -> Usage:
    """The last days, as days of a time zone."""
    now = ctx.clock()
    today = times.local(now, zone).date()
    first = today - dt.timedelta(days=USAGE_DAYS - 1)
    from_hour = mail_counts.hour_of(times.moment_of(dt.datetime.combine(first, dt.time()), zone))
    async with ctx.store.scanning(account_id) as tx:
        sums = await mail_counts.hourly_sums(
            tx, account_id, from_hour=from_hour, until_hour=mail_counts.hour_of(now) + 1, hours=1
        )
        after = identifiers.at(identifiers.MESSAGE, from_hour * times.HOUR)
        floor = await stored_accounts.usage_floor(tx, account_id, after=after, examined=MAX_MESSAGES)
        tags = await stored_accounts.usage_by_tag(tx, account_id, after=floor or after, limit=MAX_TAGS)
    by_day: collections.Counter[dt.date] = collections.Counter()
    for hour in sums:
        by_day[times.local((from_hour + hour.bucket) * times.HOUR, zone).date()] += hour.recipients
    days = [first + dt.timedelta(days=place) for place in range(USAGE_DAYS)]
    counted_from = None if floor is None else identifiers.time_of(floor, identifiers.MESSAGE)
    return Usage([(day, by_day[day]) for day in days], tags, counted_from)
