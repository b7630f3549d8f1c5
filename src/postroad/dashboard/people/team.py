"""`/team`: the users of the account, what their roles permit, and its single sign-on."""

from typing import Any, Final

from postroad import errors
from postroad.dashboard.framework import forms, requests
from postroad.dashboard.people import login
from postroad.model.people import callers, grants
from postroad.services.accounts import account_registry
from postroad.services.domains import domain_registry
from postroad.services.operations.notices import sender
from postroad.services.people import credentials, password_links, second_factors, sessions, sso_connections, sso_flow
from postroad.services.people import users as account_users
from postroad.storage.people import users
from postroad.web import routing

PATH: Final = "/team"
MANAGE: Final = callers.Permission.MANAGE
_NOTICES: Final = {
    callers.Role.OWNER: "an owner",
    callers.Role.ADMIN: "an admin",
    callers.Role.DEVELOPER: "a developer",
    callers.Role.ANALYST: "an analyst",
    callers.Role.READ_ONLY: "read only",
}


class Invitation(forms.Form, frozen=True, kw_only=True):
    email: str
    role: callers.Role


class Requirement(forms.Form, frozen=True, kw_only=True):
    """Whether a second factor is required."""

    required: bool


class RoleChange(forms.Form, frozen=True, kw_only=True):
    role: callers.Role


class Disabling(forms.Form, frozen=True, kw_only=True):
    hand_over: bool | None = None


class Removal(forms.Form, frozen=True, kw_only=True):
    secrets: credentials.SecretsAction | None = None


async def index(
    request: requests.PageRequest, *, status: int = 200, link: dict[str, Any] | None = None
) -> routing.Response:
    members = await account_users.of_account(request.ctx, request.account_id)
    is_mailed = await sender.payer(request.ctx) is not None
    with_factor = await second_factors.users_with(request.ctx, request.account_id)
    return request.page(
        "team.html",
        status=status,
        users=members,
        roles=callers.ROLE_TEXTS,
        given=_given(request),
        link=link,
        is_mailed=is_mailed,
        with_factor=with_factor,
    )


async def show_roles(request: requests.PageRequest) -> routing.Response:
    """What each role permits: the table of model/people/callers.py."""
    columns = {name: callers.ROLE_PERMISSIONS[role] for role, (name, _) in callers.ROLE_TEXTS.items()}
    columns["Operator"] = callers.OPERATOR_PERMISSIONS
    return request.page("roles.html", permissions=callers.PERMISSION_TEXTS, columns=columns)


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
    await account_registry.require_second_factor(request.ctx, request.account_id, required=form.required)
    notice = (
        "Two-factor authentication is now required."
        if form.required
        else "Two-factor authentication is no longer required."
    )
    return request.redirect(PATH, notice=notice)


async def change_role(request: requests.PageRequest) -> routing.Response:
    form: RoleChange = request.form
    user = await account_users.change(request.ctx, request.account_id, request.path["id"], role=form.role)
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
    user = await account_users.enable(request.ctx, request.account_id, request.path["id"])
    return request.redirect(PATH, notice=f"{user.email} is enabled and can log in again.")


async def show(request: requests.PageRequest) -> routing.Response:
    """A user: role, links, sessions in this account, and what they created, before they are disabled or removed."""
    user = await _managed(request)
    return request.page(
        "team_user.html",
        user=user,
        roles=callers.ROLE_TEXTS,
        given=_given(request),
        has_factor=user.id in await second_factors.users_with(request.ctx, request.account_id),
        sessions=await sessions.of_user(request.ctx, user),
        created=await credentials.secrets_created_by(request.ctx, user),
    )


async def end_session(request: requests.PageRequest) -> routing.Response:
    user = await _managed(request)
    await sessions.end(request.ctx, request.path["session"], user_id=user.id)
    return request.redirect(f"{PATH}/{user.id}", notice=f"A session of {user.email} is ended.")


async def remove(request: requests.PageRequest) -> routing.Response:
    """Remove a user, and revoke what they created or take it over."""
    form: Removal = request.form
    user, _ = await account_users.remove(request.ctx, request.account_id, request.path["id"], secrets=form.secrets)
    return request.redirect(PATH, notice=f"{user.email} is removed from the team.")


def _given(request: requests.PageRequest) -> dict[callers.Role, str]:
    """The roles that the user of the request may give. Who is no owner changes no owners, and makes none."""
    may_own = request.may(callers.Permission.OWN)
    return {role: name for role, (name, _) in callers.ROLE_TEXTS.items() if may_own or role != callers.Role.OWNER}


async def _managed(request: requests.PageRequest) -> users.User:
    """The user of the path, whom the user of the request may manage."""
    user = await account_users.find(request.ctx, request.account_id, request.path["id"])
    if user.role == callers.Role.OWNER and not request.may(callers.Permission.OWN):
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
    requests.post(f"{PATH}/second-factor", require_second_factor, form=Requirement, permission=callers.Permission.OWN),
    requests.post(f"{PATH}/{{id}}/role", change_role, form=RoleChange, permission=MANAGE),
    requests.post(f"{PATH}/{{id}}/link", make_link, permission=MANAGE),
    requests.post(f"{PATH}/{{id}}/recovery-link", make_recovery_link, permission=MANAGE),
    requests.post(f"{PATH}/{{id}}/disable", disable, form=Disabling, permission=MANAGE),
    requests.post(f"{PATH}/{{id}}/enable", enable, permission=MANAGE),
    requests.get(f"{PATH}/{{id}}", show, permission=MANAGE),
    requests.post(f"{PATH}/{{id}}/sessions/{{session}}/end", end_session, permission=MANAGE),
    requests.post(f"{PATH}/{{id}}/remove", remove, form=Removal, permission=MANAGE),
)


SSO_PATH: Final = "/team/sso"
OWN_SSO: Final = callers.Permission.OWN


class ConnectionForm(forms.Form, frozen=True, kw_only=True):
    """What the provider shows where Postroad is registered, and what is done with those who come."""

    issuer: str
    client_id: str
    client_secret: str | None = None
    without_secret: bool | None = None
    domains: tuple[str, ...] | None = None
    scopes: str | None = None
    role: callers.Role
    groups_claim: str | None = None
    groups: str | None = None
    creates_users: bool | None = None
    allows_passwords: bool | None = None


async def show_sso(request: requests.PageRequest) -> routing.Response:
    """The connection, or an empty form."""
    found = await sso_connections.find(request.ctx, request.account_id)
    domains = await domain_registry.of_account(request.ctx, request.account_id)
    names = [domain.name for domain in domains if domain.verified_at is not None]
    chosen = [] if found is None else found.domains
    return request.page(
        "team_sso.html",
        connection=None if found is None else found.row,
        groups="" if found is None else "\n".join(f"{group} = {role}" for group, role in found.row.roles.items()),
        domains=sorted({*names, *chosen}),
        chosen=chosen,
        role_names=[(role.value, name) for role, (name, _) in callers.ROLE_TEXTS.items()],
        redirect_uri=sso_connections.redirect_uri(request.ctx.settings, request.account_id),
        log_out_uri=sso_connections.log_out_uri(request.ctx.settings),
    )


async def save_sso(request: requests.PageRequest) -> routing.Response:
    form: ConnectionForm = request.form
    draft = sso_connections.Draft(
        issuer=form.issuer.strip(),
        client_id=form.client_id.strip(),
        client_secret="" if form.without_secret else form.client_secret,
        domains=form.domains or (),
        scopes=form.scopes or "",
        role=form.role,
        groups_claim=form.groups_claim or sso_connections.DEFAULT_GROUPS_CLAIM,
        groups=_groups(form.groups or ""),
        creates_users=form.creates_users is True,
        allows_passwords=form.allows_passwords is True,
    )
    await sso_connections.save(request.ctx, request.account_id, draft)
    return request.redirect(SSO_PATH, notice="Single sign-on saved. Test it before you tell your users.")


async def try_sso(request: requests.PageRequest) -> routing.Response:
    begun = await sso_flow.begin(request.ctx, request.account_id, next_path=SSO_PATH, is_test=True)
    return requests.leave(
        request.site, request.http.headers, begun.url, headers=(login.sso_cookie(request.site, begun),)
    )


async def remove_sso(request: requests.PageRequest) -> routing.Response:
    await sso_connections.remove(request.ctx, request.account_id)
    return request.redirect(SSO_PATH, notice="Single sign-on removed.")


def _groups(text: str) -> dict[str, Any]:
    """The role by group; a line for each, such as `admins = owner`."""
    found = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        group, _, role = (part.strip() for part in line.rpartition("="))
        try:
            found[group] = callers.Role(role)
        except ValueError:
            roles = ", ".join(callers.Role)
            raise errors.InvalidRequest(f"groups: write a group, = and one of {roles} on each line") from None
    return found


SSO_ROUTES: Final = (
    requests.get(SSO_PATH, show_sso, permission=OWN_SSO, viewing=requests.Viewing.REFUSED),
    requests.post(SSO_PATH, save_sso, form=ConnectionForm, permission=OWN_SSO),
    requests.post(f"{SSO_PATH}/test", try_sso, permission=OWN_SSO),
    requests.post(f"{SSO_PATH}/remove", remove_sso, permission=OWN_SSO),
)
