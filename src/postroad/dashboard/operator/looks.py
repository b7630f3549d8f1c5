"""An operator looks at an account: begin and end it (services/accounts/looks.py)."""

from typing import Final

from postroad.dashboard import cookies, requests
from postroad.dashboard.operator import console
from postroad.services.accounts import looks
from postroad.web import routing


async def begin(request: requests.PageRequest) -> routing.Response:
    """Begin to look at an account; its overview opens."""
    look = await looks.begin(request.ctx, request.session, request.path["id"])
    return requests.redirect(request.http.headers, "/", headers=(requests.look_cookie(request, look),))


async def end(request: requests.PageRequest) -> routing.Response:
    """End the look; the console's page of the account opens."""
    look = requests.read_look(request)
    gone = cookies.remove(cookies.LOOK, is_secure=request.site.is_secure)
    path = "/operator/accounts" if look is None else f"/operator/accounts/{look.account_id}"
    return request.redirect(path, notice="The look has ended.", headers=(gone,))


ROUTES: Final = (
    console.post("/operator/accounts/{id}/look", begin),
    console.post("/operator/look/end", end),
)
