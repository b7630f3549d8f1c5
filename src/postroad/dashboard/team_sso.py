"""`/team/sso`: the single sign-on of the account. Owners set it up, test it and remove it."""

from typing import Any, Final

from postroad import errors
from postroad.dashboard import forms, requests, sso
from postroad.model import caller
from postroad.services.domains import registry
from postroad.services.sso import connections, flow
from postroad.web import routing

PATH: Final = "/team/sso"
OWN: Final = caller.Permission.OWN


class ConnectionForm(forms.Form, frozen=True, kw_only=True):
    """What the provider shows where Postroad is registered, and what is done with those who come."""

    issuer: str
    client_id: str
    client_secret: str | None = None
    without_secret: bool | None = None
    domains: tuple[str, ...] | None = None
    scopes: str | None = None
    role: caller.Role
    groups_claim: str | None = None
    groups: str | None = None
    creates_users: bool | None = None
    allows_passwords: bool | None = None


async def show(request: requests.PageRequest) -> routing.Response:
    """The connection, or an empty form."""
    found = await connections.find(request.ctx, request.account_id)
    domains = await registry.of_account(request.ctx, request.account_id)
    names = [one.name for one in domains if one.verified_at is not None]
    chosen = [] if found is None else found.domains
    return request.page(
        "team_sso.html",
        connection=None if found is None else found.row,
        groups="" if found is None else "\n".join(f"{group} = {role}" for group, role in found.row.roles.items()),
        domains=sorted({*names, *chosen}),
        chosen=chosen,
        role_names=[(role.value, name) for role, (name, _) in caller.ROLE_TEXTS.items()],
        redirect_uri=connections.redirect_uri(request.ctx.settings, request.account_id),
        log_out_uri=connections.log_out_uri(request.ctx.settings),
    )


async def save(request: requests.PageRequest) -> routing.Response:
    """Create or change the connection."""
    form: ConnectionForm = request.form
    draft = connections.Draft(
        issuer=form.issuer.strip(),
        client_id=form.client_id.strip(),
        client_secret="" if form.without_secret else form.client_secret,
        domains=form.domains or (),
        scopes=form.scopes or "",
        role=form.role,
        groups_claim=form.groups_claim or connections.DEFAULT_GROUPS_CLAIM,
        groups=_groups(form.groups or ""),
        creates_users=form.creates_users is True,
        allows_passwords=form.allows_passwords is True,
    )
    await connections.save(request.ctx, request.account_id, draft)
    return request.redirect(PATH, notice="Single sign-on saved. Test it before you tell your people.")


async def test(request: requests.PageRequest) -> routing.Response:
    """Send the browser to the provider, as a login would."""
    begun = await flow.begin(request.ctx, request.account_id, next_path=PATH, is_test=True)
    return requests.leave(request.site, request.http.headers, begun.url, headers=(sso.cookie(request.site, begun),))


async def remove(request: requests.PageRequest) -> routing.Response:
    """Remove the connection."""
    await connections.remove(request.ctx, request.account_id)
    return request.redirect(PATH, notice="Single sign-on removed.")


def _groups(text: str) -> dict[str, Any]:
    """The role by group; a line for each, such as `admins = owner`."""
    found = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        group, _, role = (part.strip() for part in line.rpartition("="))
        try:
            found[group] = caller.Role(role)
        except ValueError:
            roles = ", ".join(caller.Role)
            raise errors.InvalidRequest(f"groups: write a group, = and one of {roles} on each line") from None
    return found


ROUTES: Final = (
    requests.get(PATH, show, permission=OWN, looking=requests.Looking.REFUSED),
    requests.post(PATH, save, form=ConnectionForm, permission=OWN),
    requests.post(f"{PATH}/test", test, permission=OWN),
    requests.post(f"{PATH}/remove", remove, permission=OWN),
)
