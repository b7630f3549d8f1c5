"""`/team`: the people of the account. Everybody sees them; owners invite, change and remove them."""

from collections.abc import Awaitable, Callable
from typing import Any, Final

from postroad.dashboard import forms, visits
from postroad.dashboard import site as sites
from postroad.model import caller
from postroad.services import context, password_links, people
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


async def index(visit: visits.Visit) -> routing.Answer:
    """The people."""
    return await _page(visit)


async def invite(visit: visits.Visit) -> routing.Answer:
    """Somebody new, and the link by which they choose a password: shown once."""
    form: Invitation = visit.form
    invited = await people.invite(visit.ctx, visit.account_id, email=form.email, role=form.role)
    return await _page(visit, status=201, link=_link(visit, invited.user, invited.link_token, invited.expires_at))


async def make_link(visit: visits.Visit) -> routing.Answer:
    """A link by which somebody chooses a new password: shown once."""
    user = await people.find(visit.ctx, visit.account_id, visit.request.path["id"])
    made = await people.make_link(visit.ctx, visit.account_id, user.id)
    return await _page(visit, status=201, link=_link(visit, user, made.token, made.expires_at))


async def change_role(visit: visits.Visit) -> routing.Answer:
    """Another role."""
    form: RoleChange = visit.form
    user = await people.change_role(visit.ctx, visit.account_id, visit.request.path["id"], role=form.role)
    return visit.go(PATH, notice=f"{user.email} is {_with_article(form.role)} now.")


async def lock_out(visit: visits.Visit) -> routing.Answer:
    """Nobody may log in as this person."""
    return await _done(visit, people.disable, "{} is locked out.")


async def let_in(visit: visits.Visit) -> routing.Answer:
    """This person may log in again."""
    return await _done(visit, people.enable, "{} may log in again.")


async def remove(visit: visits.Visit) -> routing.Answer:
    """Somebody leaves the team."""
    return await _done(visit, people.remove, "{} is not in the team any more.")


async def _done(
    visit: visits.Visit, verb: Callable[[context.Context, str, str], Awaitable[users.User]], notice: str
) -> routing.Answer:
    user = await verb(visit.ctx, visit.account_id, visit.request.path["id"])
    return visit.go(PATH, notice=notice.format(user.email))


async def _page(visit: visits.Visit, *, status: int = 200, link: dict[str, Any] | None = None) -> routing.Answer:
    members = await people.of_account(visit.ctx, visit.account_id)
    return visit.page("team.html", status=status, people=members, roles=ROLES, link=link)


def _link(visit: visits.Visit, user: users.User, token: str, expires_at: int) -> dict[str, Any]:
    url = password_links.url(visit.ctx.settings, token)
    return {"user": user, "url": url, "expires_at": expires_at}


def _with_article(role: caller.Role) -> str:
    return {caller.Role.OWNER: "an owner", caller.Role.MEMBER: "a member", caller.Role.READ_ONLY: "read only"}[role]


def routes(site: sites.Site) -> tuple[routing.Route[context.Context], ...]:
    """The people, and what owners do with them."""
    return (
        visits.look(site, PATH, index),
        visits.change(site, PATH, invite, form=Invitation, permission=MANAGE),
        visits.change(site, f"{PATH}/{{id}}/role", change_role, form=RoleChange, permission=MANAGE),
        visits.change(site, f"{PATH}/{{id}}/link", make_link, permission=MANAGE),
        visits.change(site, f"{PATH}/{{id}}/lock-out", lock_out, permission=MANAGE),
        visits.change(site, f"{PATH}/{{id}}/let-in", let_in, permission=MANAGE),
        visits.change(site, f"{PATH}/{{id}}/remove", remove, permission=MANAGE),
    )
