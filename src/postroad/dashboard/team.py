"""`/team`: the users of the account, and what their roles permit.

Everyone can see them; owners and admins can invite, change and remove them, but only owners other owners.
`/team/{id}` shows them the sessions of a user in this account, and what the user created; there a user is disabled
or removed.
"""

from typing import Any, Final

from postroad.dashboard import forms, requests
from postroad.model import caller
from postroad.services.accounts import registry
from postroad.services.auth import creators, grants, password_links, second_factors, session_list
from postroad.services.auth import users as account_users
from postroad.services.notices import sender
from postroad.storage import users
from postroad.web import routing

PATH: Final = "/team"
MANAGE: Final = caller.Permission.MANAGE
_NOTICES: Final = {
    caller.Role.OWNER: "an owner",
    caller.Role.ADMIN: "an admin",
    caller.Role.DEVELOPER: "a developer",
    caller.Role.ANALYST: "an analyst",
    caller.Role.READ_ONLY: "read only",
}


class Invitation(forms.Form, frozen=True, kw_only=True):
    """Whom to invite."""

    email: str
    role: caller.Role


class Requirement(forms.Form, frozen=True, kw_only=True):
    """Whether a second factor is required."""

    required: bool


class RoleChange(forms.Form, frozen=True, kw_only=True):
    """The new role."""

    role: caller.Role


class Disabling(forms.Form, frozen=True, kw_only=True):
    """Whether what the user created keeps working."""

    hand_over: bool | None = None


class Removal(forms.Form, frozen=True, kw_only=True):
    """What becomes of what the user created."""

    secrets: creators.SecretsAction | None = None


async def index(
    request: requests.PageRequest, *, status: int = 200, link: dict[str, Any] | None = None
) -> routing.Response:
    """The team, with a link that was made for somebody."""
    members = await account_users.of_account(request.ctx, request.account_id)
    is_mailed = await sender.payer(request.ctx) is not None
    with_factor = await second_factors.users_with(request.ctx, request.account_id)
    may_own = request.may(caller.Permission.OWN)
    return request.page(
        "team.html",
        status=status,
        people=members,
        roles=caller.ROLE_TEXTS,
        # Who is no owner changes no owners, and makes none.
        given={role: name for role, (name, _) in caller.ROLE_TEXTS.items() if may_own or role != caller.Role.OWNER},
        link=link,
        is_mailed=is_mailed,
        with_factor=with_factor,
    )


async def show_roles(request: requests.PageRequest) -> routing.Response:
    """What each role permits: the table of model/caller.py."""
    columns = {name: caller.ROLE_PERMISSIONS[role] for role, (name, _) in caller.ROLE_TEXTS.items()}
    columns["Operator"] = caller.OPERATOR_PERMISSIONS
    return request.page("roles.html", roles=caller.ROLE_TEXTS, permissions=caller.PERMISSION_TEXTS, columns=columns)


async def invite(request: requests.PageRequest) -> routing.Response:
    """Invite a user and show the invitation link once."""
    form: Invitation = request.form
    invited = await account_users.invite(request.ctx, request.account_id, email=form.email, role=form.role)
    return await index(request, status=201, link=_link(request, invited.user, invited.link_token, invited.expires_at))


async def make_link(request: requests.PageRequest) -> routing.Response:
    """Create a password link and show it once."""
    user = await account_users.find(request.ctx, request.account_id, request.path["id"])
    made = await account_users.create_password_link(request.ctx, request.account_id, user.id)
    return await index(request, status=201, link=_link(request, user, made.token, made.expires_at))


async def make_recovery_link(request: requests.PageRequest) -> routing.Response:
    """Create a recovery link, which also removes second factors, and show it once."""
    user = await account_users.find(request.ctx, request.account_id, request.path["id"])
    made = await account_users.create_password_link(request.ctx, request.account_id, user.id, is_recovery=True)
    link = _link(request, user, made.token, made.expires_at) | {"is_recovery": True}
    return await index(request, status=201, link=link)


async def require_second_factor(request: requests.PageRequest) -> routing.Response:
    """Require a second factor of everybody in the account, or no longer."""
    form: Requirement = request.form
    await registry.require_second_factor(request.ctx, request.account_id, required=form.required)
    notice = "A second factor is required now." if form.required else "A second factor is no longer required."
    return request.redirect(PATH, notice=notice)


async def change_role(request: requests.PageRequest) -> routing.Response:
    """Change a role."""
    form: RoleChange = request.form
    user = await account_users.change_role(request.ctx, request.account_id, request.path["id"], role=form.role)
    return request.redirect(PATH, notice=f"{user.email} is now {_NOTICES[form.role]}.")


async def disable(request: requests.PageRequest) -> routing.Response:
    """Disable a user, which ends their sessions and stops what they created, or take that over."""
    form: Disabling = request.form
    user = await account_users.disable(
        request.ctx, request.account_id, request.path["id"], hand_over=bool(form.hand_over)
    )
    kept = " Their API keys and SMTP credentials are now yours and keep working." if form.hand_over else ""
    return request.redirect(PATH, notice=f"{user.email} is disabled.{kept}")


async def enable(request: requests.PageRequest) -> routing.Response:
    """Enable a user again."""
    user = await account_users.enable(request.ctx, request.account_id, request.path["id"])
    return request.redirect(PATH, notice=f"{user.email} is enabled and can log in again.")


async def show(request: requests.PageRequest) -> routing.Response:
    """A user: their sessions in this account, and what they created, before they are disabled or removed."""
    user = await _managed(request)
    return request.page(
        "team_user.html",
        user=user,
        roles=caller.ROLE_TEXTS,
        sessions=await session_list.of_user(request.ctx, user),
        created=await creators.created_by(request.ctx, user),
    )


async def end_session(request: requests.PageRequest) -> routing.Response:
    """End a session of a user in this account."""
    user = await _managed(request)
    await session_list.end_of_user(request.ctx, user, request.path["session"])
    return request.redirect(f"{PATH}/{user.id}", notice=f"A session of {user.email} is ended.")


async def remove(request: requests.PageRequest) -> routing.Response:
    """Remove a user, and revoke what they created or take it over."""
    form: Removal = request.form
    user, _ = await account_users.remove(request.ctx, request.account_id, request.path["id"], secrets=form.secrets)
    return request.redirect(PATH, notice=f"{user.email} is removed from the team.")


async def _managed(request: requests.PageRequest) -> users.User:
    """The user of the path, whom the user of the request may manage."""
    user = await account_users.find(request.ctx, request.account_id, request.path["id"])
    if user.role == caller.Role.OWNER and not request.may(caller.Permission.OWN):
        raise grants.only_owners()
    return user


def _link(request: requests.PageRequest, user: users.User, token: str, expires_at: int) -> dict[str, Any]:
    url = password_links.url(request.ctx.settings, token)
    return {
        "is_recovery": False,
        "email": user.email,
        "has_joined": user.joined_at is not None,
        "url": url,
        "expires_at": expires_at,
    }


ROUTES: Final = (
    requests.get(PATH, index),
    requests.get(f"{PATH}/roles", show_roles),
    requests.post(PATH, invite, form=Invitation, permission=MANAGE),
    requests.post(f"{PATH}/second-factor", require_second_factor, form=Requirement, permission=caller.Permission.OWN),
    requests.post(f"{PATH}/{{id}}/role", change_role, form=RoleChange, permission=MANAGE),
    requests.post(f"{PATH}/{{id}}/link", make_link, permission=MANAGE),
    requests.post(f"{PATH}/{{id}}/recovery-link", make_recovery_link, permission=MANAGE),
    requests.post(f"{PATH}/{{id}}/disable", disable, form=Disabling, permission=MANAGE),
    requests.post(f"{PATH}/{{id}}/enable", enable, permission=MANAGE),
    requests.get(f"{PATH}/{{id}}", show, permission=MANAGE),
    requests.post(f"{PATH}/{{id}}/sessions/{{session}}/end", end_session, permission=MANAGE),
    requests.post(f"{PATH}/{{id}}/remove", remove, form=Removal, permission=MANAGE),
)
