"""`/credits`: the balance, the ledger with its running balance, and usage by day and by tag."""

from collections.abc import Mapping
from typing import Final

from postroad.dashboard.framework import lists, requests
from postroad.model.mail import statuses
from postroad.services.accounts import credits
from postroad.storage.people import accounts
from postroad.web import routing

ROWS: Final = 50
# The kinds of ledger entries, as the page says them.
KINDS: Final[Mapping[str, str]] = {
    accounts.LedgerKind.GRANT: "Credits added",
    accounts.LedgerKind.RESERVE: "Reserved for a message",
    accounts.LedgerKind.SETTLE: "Spent on a message",
    accounts.LedgerKind.RELEASE: "Refunded",
}
# What became of a reservation; of a message that has been deleted, nobody knows any more.
BILLING: Final[Mapping[str, str]] = {
    statuses.BillingStatus.RESERVED: KINDS[accounts.LedgerKind.RESERVE],
    statuses.BillingStatus.SETTLED: KINDS[accounts.LedgerKind.SETTLE],
    statuses.BillingStatus.RELEASED: "Reserved for a message, refunded later",
}


async def index(request: requests.PageRequest) -> routing.Response:
    query: lists.NewestQuery = request.query
    found = await credits.statement(request.ctx, request.account_id, before=query.before, limit=ROWS)
    is_first = query.before is None
    return request.page(
        "credits.html",
        rows=[
            (line, BILLING.get(line.billing or "", KINDS.get(line.entry.kind, line.entry.kind))) for line in found.rows
        ],
        next_cursor=found.next_cursor,
        is_first=is_first,
        # Nothing was ever added.
        is_new=is_first and not found.rows and not found.next_cursor,
        usage=await credits.recent_usage(request.ctx, request.account_id, request.zone) if is_first else None,
        usage_days=credits.USAGE_DAYS,
        needs_credits=credits.needs_credits(request.ctx, request.account),
    )


async def export_file(request: requests.PageRequest) -> routing.Response:
    return routing.attachment("ledger.csv", credits.export_ledger(request.ctx, request.account_id))


ROUTES: Final = (
    requests.get("/credits", index, query=lists.NewestQuery, is_live=True),
    requests.get("/credits/ledger.csv", export_file, viewing=requests.Viewing.REFUSED),
)
