"""The ledger as a CSV file (RFC 4180), oldest first, with the balances after each entry.

A balance is the sum of the entries up to that row, so the file is consistent whatever is written meanwhile; the ledger
is complete since the account's creation.
"""

from collections.abc import AsyncGenerator, Sequence
from typing import Final

from postroad.model import times
from postroad.services import context, csv_rows
from postroad.storage import ledger

COLUMNS: Final = (
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
PAGE_ROWS: Final = 1_000


async def export(ctx: context.Context, account_id: str) -> AsyncGenerator[bytes, None]:
    """The whole ledger, streamed."""
    balances = _Balances()
    rows: list[Sequence[str | int]] = [COLUMNS]
    after = ""
    while True:
        async with ctx.store.scanning(account_id) as tx:
            page = await ledger.page_from(tx, account_id, after=after, limit=PAGE_ROWS)
        rows.extend(balances.cells(entry) for entry in page)
        if rows:
            yield csv_rows.lines(rows)
        if len(page) < PAGE_ROWS:
            return
        rows, after = [], page[-1].id


class _Balances:
    """Running sums of the entries."""

    def __init__(self) -> None:
        self._available = self._reserved = 0

    def cells(self, entry: ledger.Entry) -> Sequence[str | int]:
        """The row of the next entry."""
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
