"""`/team`: the people of the account. Everybody sees them; owners invite, change and remove them."""

from collections.abc import Awaitable, Callable
from typing import Any, Final

from postroad.dashboard import forms, requests
from postroad.dashboard import site as sites
from postroad.model import caller
from postroad.services import context
from postroad.services.auth import password_links
from postroad.services.auth import users as account_users
from postroad.storage import users
from postroad.web import routing

PATH: Final = "/team"
MANAGE: Final = caller.Permission.MANAGE
# What each role may do, as the page explains it.
ROLES: Final = {
    caller.Role.OWNER: ("Owner", "Everything, and the people of the team."),
    caller.Role.MEMBER: (
        "Member",
        "Everything but the people: send, and change domains, keys, templates, the webhook.",
    ),
    caller.Role.READ_ONLY: ("Read only", "Look at everything, messages with their content too. Change nothing."),
}


class Invitation(forms.Form, frozen=True, kw_only=True):
    """Somebody to invite."""

    email: str
    role: caller.Role


class RoleChange(forms.Form, frozen=True, kw_only=True):
    """What a person shall be."""

    role: caller.Role


async def index(page_request: requests.PageRequest) -> routing.Response:
    """The people."""
    return await _page(page_request)


async def invite(page_request: requests.PageRequest) -> routing.Response:
    """Somebody new, and the link by which they choose a password: shown once."""
    form: Invitation = page_request.form
    invited = await account_users.invite(page_request.ctx, page_request.account_id, email=form.email, role=form.role)
    return await _page(
        page_request, status=201, link=_link(page_request, invited.user, invited.link_token, invited.expires_at)
    )


async def make_link(page_request: requests.PageRequest) -> routing.Response:
    """A link by which somebody chooses a new password: shown once."""
    user = await account_users.find(page_request.ctx, page_request.account_id, page_request.request.path["id"])
    made = await account_users.create_password_link(page_request.ctx, page_request.account_id, user.id)
    return await _page(page_request, status=201, link=_link(page_request, user, made.token, made.expires_at))


async def change_role(page_request: requests.PageRequest) -> routing.Response:
    """Another role."""
    form: RoleChange = page_request.form
    user = await account_users.change_role(
        page_request.ctx, page_request.account_id, page_request.request.path["id"], role=form.role
    )
    return page_request.redirect(PATH, notice=f"{user.email} is {_with_article(form.role)} now.")


async def disable(page_request: requests.PageRequest) -> routing.Response:
    """Nobody may log in as this person."""
    return await _done(page_request, account_users.disable, "{} is locked out.")


async def enable(page_request: requests.PageRequest) -> routing.Response:
    """This person may log in again."""
    return await _done(page_request, account_users.enable, "{} may log in again.")


async def remove(page_request: requests.PageRequest) -> routing.Response:
    """Somebody leaves the team."""
    return await _done(page_request, account_users.remove, "{} is not in the team any more.")


async def _done(
    page_request: requests.PageRequest, verb: Callable[[context.Context, str, str], Awaitable[users.User]], notice: str
) -> routing.Response:
    user = await verb(page_request.ctx, page_request.account_id, page_request.request.path["id"])
    return page_request.redirect(PATH, notice=notice.format(user.email))


async def _page(
    page_request: requests.PageRequest, *, status: int = 200, link: dict[str, Any] | None = None
) -> routing.Response:
    members = await account_users.of_account(page_request.ctx, page_request.account_id)
    return page_request.page("team.html", status=status, people=members, roles=ROLES, link=link)


def _link(page_request: requests.PageRequest, user: users.User, token: str, expires_at: int) -> dict[str, Any]:
    url = password_links.url(page_request.ctx.settings, token)
    return {"user": user, "url": url, "expires_at": expires_at}


def _with_article(role: caller.Role) -> str:
    return {caller.Role.OWNER: "an owner", caller.Role.MEMBER: "a member", caller.Role.READ_ONLY: "read only"}[role]


def routes(site: sites.Site) -> tuple[routing.Route[context.Context], ...]:
    """The people, and what owners do with them."""
    return (
        requests.get(site, PATH, index),
        requests.post(site, PATH, invite, form=Invitation, permission=MANAGE),
        requests.post(site, f"{PATH}/{{id}}/role", change_role, form=RoleChange, permission=MANAGE),
        requests.post(site, f"{PATH}/{{id}}/link", make_link, permission=MANAGE),
        requests.post(site, f"{PATH}/{{id}}/lock-out", disable, permission=MANAGE),
        requests.post(site, f"{PATH}/{{id}}/let-in", enable, permission=MANAGE),
        requests.post(site, f"{PATH}/{{id}}/remove", remove, permission=MANAGE),
    )
