"""`/credits`: the balance, the ledger by day with its running balance, and usage by day and by tag."""

from collections.abc import Mapping
from typing import Final

import msgspec

from postroad.dashboard.framework import forms, requests
from postroad.model.mail import statuses
from postroad.services.accounts import credits
from postroad.storage.people import accounts
from postroad.web import routing

ROWS: Final = 50
DAYS: Final = 31
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


class Query(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The days before one, or the entries of a day, as far as they are older than one of them."""

    until: str | None = None
    day: str | None = None
    before: str | None = None


async def index(request: requests.PageRequest) -> routing.Response:
    query: Query = request.query
    if query.day is not None:
        return await _show_day(request, query.day, query.before)
    is_first = query.until is None
    until = None if query.until is None else forms.start_of_day("until", query.until, request.zone)
    found = await credits.days(request.ctx, request.account_id, request.zone, until=until, limit=DAYS)
    return request.page(
        "credits.html",
        days=found.rows,
        until=found.until,
        is_first=is_first,
        # Nothing was ever added.
        is_new=is_first and not found.rows and found.until is None,
        usage=await credits.recent_usage(request.ctx, request.account_id, request.zone) if is_first else None,
        usage_days=credits.USAGE_DAYS,
        needs_credits=credits.needs_credits(request.ctx, request.account),
    )


async def _show_day(request: requests.PageRequest, day: str, before: str | None) -> routing.Response:
    found = await credits.statement(
        request.ctx,
        request.account_id,
        since=forms.start_of_day("day", day, request.zone),
        until=forms.end_of_day("day", day, request.zone),
        before=before,
        limit=ROWS,
    )
    return request.page(
        "credits_day.html",
        day=day,
        rows=[
            (line, BILLING.get(line.billing or "", KINDS.get(line.entry.kind, line.entry.kind))) for line in found.rows
        ],
        next_cursor=found.next_cursor,
        is_first=before is None,
    )


async def export_file(request: requests.PageRequest) -> routing.Response:
    return routing.attachment("ledger.csv", credits.export_ledger(request.ctx, request.account_id))


ROUTES: Final = (
    requests.get("/credits", index, query=Query, is_live=True),
    requests.get("/credits/ledger.csv", export_file, viewing=requests.Viewing.REFUSED),
)
