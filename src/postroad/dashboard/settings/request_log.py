"""`/requests`: requests of the account that were refused or failed, and changes by its keys, with filters."""

from typing import Final

import msgspec

from postroad.dashboard.framework import forms, navigation, requests
from postroad.services import request_log
from postroad.web import routing

PATH: Final = "/requests"
ROWS: Final = 50
FILTERS: Final = ("status", "caller", "since", "until")


class Query(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The filters and the cursor; the form also sends empty fields. Dates are days of the user, both included."""

    status: str | None = None
    caller: str | None = None
    since: str | None = None
    until: str | None = None
    before: str | None = None


async def index(request: requests.PageRequest) -> routing.Response:
    query: Query = request.query
    filters = request_log.Filters(
        status=next((status for status in request_log.STATUSES if status == query.status), None),
        caller_id=query.caller or "",
        since=forms.start_of_day("since", query.since, request.zone) if query.since else None,
        until=forms.end_of_day("until", query.until, request.zone) if query.until else None,
    )
    found = await request_log.page(request.ctx, request.account_id, filters, before=query.before, limit=ROWS)
    asked = {name: getattr(query, name) for name in FILTERS}
    return request.page(
        "requests.html",
        rows=found.rows,
        status_of=request_log.status_of,
        statuses=request_log.STATUSES,
        callers=await request_log.callers_of(request.ctx, request.account_id),
        next_url=navigation.url(PATH, **asked, before=found.next_cursor) if found.next_cursor else "",
        query=query,
        is_first=query.before is None,
        is_filtered=any(asked.values()),
        days=request_log.days(request.ctx),
    )


async def show(request: requests.PageRequest) -> routing.Response:
    found = await request_log.find(request.ctx, request.account_id, request.path["id"])
    body = "" if request.hides_content else found.body.decode()
    return request.page("request.html", found=found, outcome=request_log.status_of(found), body=body)


ROUTES: Final = (requests.get(PATH, index, query=Query), requests.get(f"{PATH}/{{id}}", show))
