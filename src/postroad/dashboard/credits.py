"""`/credits`: the balance and the ledger."""

from typing import Final

import msgspec

from postroad.dashboard import requests
from postroad.services.accounts import credits, ledger_csv
from postroad.storage import ledger
from postroad.web import routing

ROWS: Final = 50
CSV: Final = "text/csv; charset=utf-8"
# The kinds of ledger entries, as the page says them.
KINDS: Final = {
    ledger.Kind.GRANT: "Credits added",
    ledger.Kind.RESERVE: "Reserved for a message",
    ledger.Kind.SETTLE: "Spent on a message",
    ledger.Kind.RELEASE: "Refunded",
}


class Query(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which part of the ledger."""

    before: str | None = None


async def index(request: requests.PageRequest) -> routing.Response:
    """The balances and a page of the ledger."""
    query: Query = request.query
    entries = await credits.ledger(request.ctx, request.account_id, query.before, ROWS + 1)
    return request.page(
        "credits.html",
        rows=entries[:ROWS],
        next_cursor=entries[ROWS - 1].id if len(entries) > ROWS else None,
        is_first=query.before is None,
        kinds=KINDS,
    )


async def export_file(request: requests.PageRequest) -> routing.Response:
    """The whole ledger as CSV."""
    parts = ledger_csv.export(request.ctx, request.account_id)
    disposition = ("Content-Disposition", 'attachment; filename="ledger.csv"')
    return routing.Response(200, parts, headers=(disposition,), content_type=CSV)


ROUTES: Final = (
    requests.get("/credits", index, query=Query),
    requests.get("/credits/ledger.csv", export_file),
)
