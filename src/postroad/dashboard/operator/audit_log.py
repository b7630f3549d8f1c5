"""`/operator/audit-log`: who did what in all accounts and in the installation, with the filters of an account's log."""

from typing import Final, Literal

from postroad.dashboard.framework import navigation, requests
from postroad.dashboard.operator import console
from postroad.dashboard.settings import audit_log as of_account
from postroad.services import audit_log
from postroad.services.accounts import account_registry, directory
from postroad.web import routing

PATH: Final = "/operator/audit-log"
_FILTERS: Final = (*of_account.FILTERS, "account", "of")


class Query(of_account.Query, frozen=True, forbid_unknown_fields=True):
    """The filters of the account's log, and of which account, or only of the installation."""

    account: str | None = None
    of: Literal["", "installation"] | None = None


async def index(request: requests.PageRequest) -> routing.Response:
    query: Query = request.query
    ctx, account, account_id = request.ctx, None, None
    if query.account:
        account = await account_registry.find(ctx, query.account)
        account_id = account.id
    elif query.of:
        account_id = audit_log.INSTALLATION
    filters = of_account.filters_of(request)
    found = await audit_log.search(ctx, account_id, filters, before=query.before, limit=of_account.ROWS)
    asked = {name: getattr(query, name) for name in _FILTERS}
    return request.page(
        "operator/audit_log.html",
        rows=[(entry, audit_log.text(entry)) for entry in found.rows],
        names=await directory.names(ctx, {row.account_id for row in found.rows}),
        operators=await directory.emails(
            ctx, {row.user_id for row in found.rows if row.user_id and row.actor_kind == "operator"}
        ),
        only=account,
        next_url=navigation.url(PATH, **asked, before=found.next_cursor) if found.next_cursor else "",
        query=query,
        groups=of_account.grouped_actions(request),
        is_first=query.before is None,
        is_filtered=any(asked.values()),
        days=ctx.settings.dashboard.audit_log_days,
    )


ROUTES: Final = (console.get(PATH, index, query=Query),)
