"""Every route of the API and of the dashboard takes who the table of roles says, and no other.

Permissions are checked before the body is read: where a body would change something, one of the wrong type is sent,
which is refused in its own way (400) to whoever may use the route.
"""

import pytest

from postroad import context
from postroad.api import openapi
from postroad.dashboard.framework import site as sites
from postroad.model.people import callers
from postroad.storage.people import accounts
from tests.dashboard import test_every_route as pages
from tests.dashboard.browser_client import Switch
from tests.permissions import surfaces, walks
from tests.permissions.walks import name

Permission, Role = callers.Permission, callers.Role
READ, VIEW, CONTENT, SEND = Permission.READ, Permission.VIEW, Permission.CONTENT, Permission.SEND
CHANGE, MANAGE, OWN, OPERATE = Permission.CHANGE, Permission.MANAGE, Permission.OWN, Permission.OPERATE
# What a GET without another entry needs is VIEW, and anything else CHANGE; the operator's need OPERATE.
NEEDED = {
    CONTENT: {
        "GET /approvals/{id}/request",
        "GET /inbox",
        "GET /inbox/{id}",
        "GET /inbox/{id}/attachments/{index}",
        "GET /inbox/{id}/preview/html",
        "GET /inbox/{id}/raw",
        "GET /messages/{id}/attachments/{index}",
        "GET /messages/{id}/code",
        "GET /messages/{id}/preview/html",
        "GET /messages/{id}/raw",
        "GET /received",
        "GET /received/{id}",
        "GET /received/{id}/attachments/{index}",
        "GET /received/{id}/preview/html",
        "GET /received/{id}/raw",
        "GET /templates/{alias}",
        "GET /templates/{alias}/picture",
        "GET /templates/{alias}/preview",
        "GET /templates/{alias}/versions",
        "GET /v1/inbound",
        "GET /v1/inbound/{id}",
        "GET /v1/inbound/{id}/raw",
        "GET /v1/messages/{id}/checks",
        "GET /v1/messages/{id}/raw",
        "GET /v1/templates/{alias}",
        "POST /template/preview",
        "POST /v1/templates/{alias}/preview",
    },
    SEND: {
        "PATCH /emails/{id}",
        "POST /emails",
        "POST /emails/batch",
        "POST /emails/{id}/cancel",
        "POST /templates/{alias}/test",
        "POST /welcome/test",
    },
    # Of the inbox, more is required of people below.
    READ: {"DELETE /v1/inbox", "GET /emails/{id}", "GET /v1/inbox", "GET /v1/inbox/{id}/raw"},
    CHANGE: {
        "GET /bulk",
        "GET /template/new",
        "GET /template/new/{starter}",
        "GET /template/new/{starter}/picture",
    },
    # Everybody's own, and what only an operator who looks gets an answer from.
    VIEW: {
        "POST /confirm",
        "POST /confirm/passkey",
        "POST /confirm/passkey/options",
        "POST /logout",
        "POST /messages/{id}/view-as",
        "POST /switch",
    },
    MANAGE: {
        "DELETE /v1/team/{id}",
        "GET /team/{id}",
        "PATCH /v1/team/{id}",
        "POST /team",
        "POST /team/{id}/disable",
        "POST /team/{id}/enable",
        "POST /team/{id}/link",
        "POST /team/{id}/recovery-link",
        "POST /team/{id}/remove",
        "POST /team/{id}/role",
        "POST /team/{id}/sessions/{session}/end",
        "POST /v1/team",
        "POST /v1/team/{id}/password-link",
        "POST /v1/team/{id}/recovery-link",
    },
    OWN: {
        "DELETE /v1/sso",
        "GET /team/sso",
        "GET /v1/sso",
        "PATCH /v1/account",
        "POST /team/second-factor",
        "POST /team/sso",
        "POST /team/sso/remove",
        "POST /team/sso/test",
        "PUT /v1/sso",
    },
}
PUBLIC = {
    *(" ".join(one) for one in pages.PUBLIC),
    "GET /v1/inbound/attachments/{token}",
    "POST /v1/auth/login",
    "POST /v1/inbox/webhook",
}


def needed(route: surfaces.Route) -> callers.Permission | None:
    """The permission that a route has to require."""
    if name(route) in PUBLIC:
        return None
    if "/operator" in route.path:
        return OPERATE
    if route.path.startswith(("/profile", "/v1/auth")):
        return VIEW  # everybody's own
    found = [permission for permission, names in NEEDED.items() if name(route) in names]
    return found[0] if found else VIEW if route.method == "GET" else CHANGE


def test_each_role_has_these_permissions() -> None:
    assert {
        Role.OWNER: {READ, VIEW, CONTENT, SEND, CHANGE, MANAGE, OWN},
        Role.ADMIN: {READ, VIEW, CONTENT, SEND, CHANGE, MANAGE},
        Role.DEVELOPER: {READ, VIEW, CONTENT, SEND, CHANGE},
        Role.ANALYST: {READ, VIEW},
        Role.READ_ONLY: {READ, VIEW, CONTENT},
    } == callers.ROLE_PERMISSIONS
    assert {OPERATE} == callers.OPERATOR_PERMISSIONS
    assert {SEND, READ} == callers.PASSWORD_PERMISSIONS
    assert callers.PERMISSION_TEXTS.keys() == set(Permission)
    assert callers.ROLE_TEXTS.keys() == set(Role)


def test_each_route_requires_the_permission_that_is_listed(ctx: context.Context, site: sites.Site) -> None:
    routes = {name(route): route for one in surfaces.build(ctx, site) for route in one.routes}
    listed = {one for names in NEEDED.values() for one in names} | PUBLIC
    assert listed - routes.keys() == set()
    wrong = {one: route.permission for one, route in routes.items() if route.permission is not needed(route)}
    assert not wrong, "\n".join(f"{one}: {found}" for one, found in wrong.items())
    assert len(routes) > 250


def test_no_api_key_opens_what_only_owners_may(ctx: context.Context, site: sites.Site) -> None:
    routes = [route for one in surfaces.build(ctx, site) for route in one.routes if name(route) in NEEDED[OWN]]
    assert {route.scope for route in routes} == {None}


def test_each_operation_declares_the_credentials_that_open_it(ctx: context.Context, site: sites.Site) -> None:
    """What `may` says of each kind; the walk below tries whether it is so."""
    (api,) = [one for one in surfaces.build(ctx, site) if one.name == surfaces.API]
    routes = [route for route in api.routes if route.permission is not OPERATE]
    paths = openapi.document(routes, version="0")["paths"]
    schemes = {kind: ("api_key", scopes) for kind, scopes in surfaces.KEYS.items()}
    schemes |= {surfaces.SMTP: ("basic", frozenset()), surfaces.NOBODY: ("", frozenset())}
    for route in routes:
        declared = paths[route.path][route.method.lower()]["security"]
        assert (not declared) is (route.permission is None), name(route)
        # Of a user it is the role that counts, which is refused as one (403).
        assert not declared or {"token": []} in declared, name(route)
        for kind, (scheme, scopes) in schemes.items():
            is_enough = not declared or any(scopes.issuperset(needed.get(scheme, ["-"])) for needed in declared)
            assert is_enough is surfaces.Credential(kind).may(api, route), (name(route), kind, declared)


@pytest.mark.parametrize("kind", surfaces.KINDS)
async def test_a_credential_opens_what_the_table_says_and_nothing_else(
    ctx: context.Context, site: sites.Site, switch: Switch, mine: accounts.Account, kind: str
) -> None:
    switch.stopping = True
    found = surfaces.build(ctx, site)
    credential = await surfaces.new_credential(ctx, found, mine.id, kind)
    # What ends the session comes last, over the API.
    wrong = [line for surface in reversed(found) for line in await walks.wrong_answers(surface, credential)]
    await site.operator_state.close()
    assert wrong == []
