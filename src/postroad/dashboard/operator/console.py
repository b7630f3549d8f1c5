"""The frame of the operator console: how its pages are guarded, and what they share.

A page is a module of this package with a tuple `ROUTES` of `get` and `post`, which `dashboard/application.py` lists.
Both admit operators only: whoever is not one gets 403 for every path, whether or not what it names exists, as in
`/v1/operator`. Handlers get a request whose context acts for the installation (`context.as_operator`), and call the
same services as the API; work in progress and results that are kept are in `request.site.operator_state`.

Templates are in `pages/operator`, extend `operator/layout.html`, and set `active` to the name of an entry of
`menu.OPERATOR_SECTIONS`. The page of a thing begins with `<p class="back">`, a link to its list. Elements with
`data-live` and an id are replaced while the page is open (`framework/live.py`).
"""

import time
from typing import Any, Final

import msgspec

from postroad import context
from postroad.dashboard.framework import forms, live, navigation, requests
from postroad.model.people import callers
from postroad.web import routing

OPERATE: Final = callers.Permission.OPERATE


def get(path: str, handler: requests.Handler, **options: Any) -> requests.SiteRoute:
    return requests.get(path, _as_operator(handler), permission=OPERATE, **options)


def post(
    path: str, handler: requests.Handler, *, form: type[forms.Form] = forms.Form, **options: Any
) -> requests.SiteRoute:
    return requests.post(path, _as_operator(handler), form=form, permission=OPERATE, **options)


def _as_operator(handler: requests.Handler) -> requests.Handler:
    async def handle(request: requests.PageRequest) -> routing.Response:
        ctx = context.as_operator(request.ctx)
        sections, fingerprint = navigation.OPERATOR_SECTIONS, await _tick(request)
        inside = msgspec.structs.replace(request, ctx=ctx, sections=sections, fingerprint=fingerprint)
        return await handler(inside)

    return handle


# `/operator/live`: open pages of the console are refreshed every few seconds.
#
# What they show changes all the time, and much of it is counted in the background; looking for changes would cost more
# than the pages do. A page that takes long to render is refreshed less often (`assets/live.js`).

REFRESH_SECONDS: Final = 5


async def _tick(request: requests.PageRequest) -> str:
    del request
    return str(time.monotonic() // REFRESH_SECONDS)


async def show_live(request: requests.PageRequest) -> routing.Response:
    return live.stream(request, _tick)


LIVE_ROUTES: Final = (get("/operator/live", show_live, query=live.Query),)
