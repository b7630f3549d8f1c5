"""`/credits`: the balance and the ledger."""

from typing import Final

from postroad.dashboard import lists, requests
from postroad.model import cursors
from postroad.services.accounts import credits, ledger_csv
from postroad.storage import ledger
from postroad.web import routing

ROWS: Final = 50
# The kinds of ledger entries, as the page says them.
KINDS: Final = {
    ledger.Kind.GRANT: "Credits added",
    ledger.Kind.RESERVE: "Reserved for a message",
    ledger.Kind.SETTLE: "Spent on a message",
    ledger.Kind.RELEASE: "Refunded",
}


async def index(request: requests.PageRequest) -> routing.Response:
    """The balances and a page of the ledger."""
    query: lists.NewestQuery = request.query
    entries = await credits.ledger(request.ctx, request.account_id, query.before, ROWS + 1)
    rows, next_cursor = cursors.page(entries, limit=ROWS)
    return request.page(
        "credits.html",
        rows=rows,
        next_cursor=next_cursor,
        is_first=query.before is None,
        kinds=KINDS,
        needs_credits=credits.needs_credits(request.ctx, request.account),
    )


async def export_file(request: requests.PageRequest) -> routing.Response:
    """The whole ledger as CSV."""
    return routing.attachment("ledger.csv", ledger_csv.export(request.ctx, request.account_id))


ROUTES: Final = (
    requests.get("/credits", index, query=lists.NewestQuery),
    requests.get("/credits/ledger.csv", export_file),
)
