"""`/operator/operators`: the people who operate the installation."""

from typing import Any, Final

from postroad import errors
from postroad.dashboard.framework import forms, requests
from postroad.dashboard.operator import console
from postroad.services.accounts import directory
from postroad.services.operations.notices import sender
from postroad.services.people import password_links, users
from postroad.web import routing

PATH: Final = "/operator/operators"


class Addition(forms.Form, frozen=True, kw_only=True):
    """The person who becomes an operator, and the account of the user, if it is another one than the caller's."""

    email: str
    account_id: str | None = None


async def index(
    request: requests.PageRequest, *, status: int = 200, link: dict[str, Any] | None = None
) -> routing.Response:
    """The operators, with a link that was made for one of them."""
    found = await users.operators(request.ctx)
    names = await directory.names(request.ctx, {operator.account_id for operator in found})
    return request.page(
        "operator/operators.html",
        status=status,
        people=found,
        names=names,
        link=link,
        is_mailed=await sender.payer(request.ctx) is not None,
    )


async def add(request: requests.PageRequest) -> routing.Response:
    """Make a user an operator, or invite one to the caller's account and show the link once."""
    form: Addition = request.form
    try:
        user = await users.add_operator(
            request.ctx, form.email, account_id=(form.account_id or "").strip() or request.user.account_id
        )
    except errors.NotFound:
        invited = await users.invite_operator(request.ctx, request.account_id, email=form.email)
        url = password_links.url(request.ctx.settings, invited.link_token)
        link = {"email": invited.user.email, "url": url, "expires_at": invited.expires_at}
        return await index(request, status=201, link=link)
    return request.redirect(PATH, notice=f"{user.email} is an operator.")


async def remove(request: requests.PageRequest) -> routing.Response:
    user = await users.remove_operator(request.ctx, request.path["id"])
    return request.redirect(PATH, notice=f"{user.email} is no longer an operator.")


ROUTES: Final = (
    console.get(PATH, index),
    console.post(PATH, add, form=Addition),
    console.post(f"{PATH}/{{id}}/remove", remove),
)
