"""`/audit-log`: who did what in the account, with filters, and as a file."""

from typing import Final

import msgspec

from postroad.dashboard.framework import forms, navigation, requests
from postroad.services import audit_log
from postroad.web import routing

PATH: Final = "/audit-log"
ROWS: Final = 50
FILTERS: Final = ("actor", "action", "subject", "since", "until")
GROUPS: Final = sorted({action.partition(".")[0] for action in audit_log.ACTIONS})


class Query(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The filters and the cursor; the form also sends empty fields. Dates are days of the user, both included."""

    actor: str | None = None
    action: str | None = None
    subject: str | None = None
    since: str | None = None
    until: str | None = None
    before: str | None = None


async def index(request: requests.PageRequest) -> routing.Response:
    query: Query = request.query
    found = await audit_log.search(
        request.ctx, request.account_id, filters_of(request), before=query.before, limit=ROWS
    )
    asked = {name: getattr(query, name) for name in FILTERS}
    return request.page(
        "audit_log.html",
        rows=[(entry, audit_log.text(entry)) for entry in found.rows],
        next_url=navigation.url(PATH, **asked, before=found.next_cursor) if found.next_cursor else "",
        export_url=navigation.url(f"{PATH}/export", **asked),
        query=query,
        groups=grouped_actions(request),
        is_first=query.before is None,
        is_filtered=any(asked.values()),
        days=request.ctx.settings.dashboard.audit_log_days,
    )


async def export_file(request: requests.PageRequest) -> routing.Response:
    return routing.attachment(
        "audit-log.csv", audit_log.export_csv(request.ctx, request.account_id, filters_of(request))
    )


def grouped_actions(request: requests.PageRequest) -> dict[str, list[str]]:
    groups = [group for group in GROUPS if request.site.has_credits or group != "credits"]
    return {group: [action for action in audit_log.ACTIONS if action.startswith(f"{group}.")] for group in groups}


def filters_of(request: requests.PageRequest) -> audit_log.Filters:
    query: Query = request.query
    zone = request.zone
    return audit_log.Filters(
        actor=(query.actor or "").strip(),
        action=query.action or "",
        subject=(query.subject or "").strip(),
        since=forms.start_of_day("since", query.since, zone) if query.since else None,
        until=forms.end_of_day("until", query.until, zone) if query.until else None,
    )


ROUTES: Final = (
    requests.get(PATH, index, query=Query),
    requests.get(f"{PATH}/export", export_file, query=Query, viewing=requests.Viewing.REFUSED),
)
