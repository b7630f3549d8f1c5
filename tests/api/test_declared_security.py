"""Every route takes exactly the credentials that `/openapi.json` declares for it, tried with each kind of them."""

import base64
import os
from typing import Any

import httpx
import pytest

from postroad import config, context
from postroad.api import documentation, monitoring, openapi
from postroad.api import routes as api_routes
from postroad.api.v1 import inbox
from postroad.model.people import callers
from postroad.services.messages import dev_inbox
from postroad.services.people import api_keys, credentials
from postroad.web import application
from tests import contexts, webhook_rows
from tests.api import management
from tests.api.v1 import test_tenancy as tenancy

SEND, READ = callers.Permission.SEND, callers.Permission.READ
# What a wrong password in a body gives is 401 too, so the bodies of these two have none.
BODIES: dict[str, Any] = {
    "POST /emails": {"from": "a@b.example", "to": "c@example.net", "subject": "x", "text": "x"},
    "PATCH /emails/{id}": {"send_at": None},
    "POST /v1/auth/login": {},
    "POST /v1/auth/confirm": {},
    "POST /v1/auth/password": {},
}
# Of each kind of credential: what a declared requirement has to be so that it is enough.
KINDS: dict[str, tuple[str, frozenset[str]]] = {
    "none": ("", frozenset()),
    "basic": ("basic", frozenset()),
    "send key": ("api_key", frozenset({"send"})),
    "read key": ("api_key", frozenset({"send", "read"})),
    "team key": ("api_key", frozenset({"team"})),
    "webhooks key": ("api_key", frozenset({"webhooks"})),
    "full key": (
        "api_key",
        frozenset({"send", "read", "templates", "suppressions", "webhooks", "domains", "statistics", "team"}),
    ),
    "owner": ("token", frozenset()),
    "reader": ("token", frozenset()),
}


@pytest.fixture
def settings(database_url: str) -> config.Settings:
    return webhook_rows.settings(database_url)


@pytest.fixture
def served(ctx: context.Context, clock: contexts.Clock) -> application.Application[context.Context]:
    """The whole API of a development installation, with its documentation."""
    mail = dev_inbox.Inbox(clock=clock, entropy=os.urandom)
    described = (*api_routes.ROUTES, *inbox.routes(mail), *monitoring.health_routes(lambda: False))
    return management.serve(ctx, (*described, *documentation.routes(described, version="0")))


async def authorization(ctx: context.Context, account_id: str, kind: str) -> dict[str, str]:
    """A header field with a new credential: some routes revoke the one they are called with."""
    if kind == "none":
        return {}
    if kind == "basic":
        credential, password = await credentials.create(ctx, account_id, "x")
        return {"Authorization": f"Basic {base64.b64encode(f'{credential.username}:{password}'.encode()).decode()}"}
    if kind.endswith(" key"):
        words: dict[str, set[str]] = {"full key": {"*"}, "read key": {SEND, READ}}
        scopes = frozenset(words.get(kind, {kind.removesuffix(" key")}))
        _, secret = await api_keys.create(ctx, account_id, credential_id=None, name="x", scopes=scopes)
        return {"Authorization": f"Bearer {secret}"}
    role = callers.Role.OWNER if kind == "owner" else callers.Role.READ_ONLY
    return {"Authorization": f"Bearer {await management.token(ctx, account_id, role)}"}


def is_declared(security: list[dict[str, list[str]]], kind: str) -> bool:
    scheme, scopes = KINDS[kind]
    return not security or any(scopes.issuperset(needed.get(scheme, ["-"])) for needed in security)


async def call(client: httpx.AsyncClient, operation: str, headers: dict[str, str]) -> httpx.Response:
    method, path = operation.split()
    name = tenancy.UNKNOWN[tenancy.NAMED.get((method, path), "message")]
    more = {"json": BODIES[operation]} if operation in BODIES else {}
    if operation == "POST /emails":
        headers = {**headers, "Idempotency-Key": "x"}
    return await tenancy.call(client, (method, path), name, headers=headers, **more)


async def test_a_route_takes_what_it_declares_and_nothing_else(
    ctx: context.Context, mine: management.AccountClients
) -> None:
    document = (await mine.nobody.get("/openapi.json")).json()
    declared = {
        f"{method.upper()} {path}": operation["security"]
        for path, item in document["paths"].items()
        for method, operation in item.items()
    }
    assert {scheme for security in declared.values() for needed in security for scheme in needed} == (
        document["components"]["securitySchemes"].keys()
    )
    wrong: list[str] = []
    for kind in KINDS:
        lasting = await authorization(ctx, mine.account_id, kind)
        for operation, security in declared.items():
            fresh = kind in ("owner", "reader") and operation == "POST /v1/auth/logout"
            headers = await authorization(ctx, mine.account_id, kind) if fresh else lasting
            response = await call(mine.nobody, operation, headers)
            if (response.status_code != 401) is not is_declared(security, kind):
                wrong.append(f"{operation} with {kind}: {response.status_code}")
    assert wrong == []
    assert len(declared) > 50


def test_the_endpoints_of_the_interface_declare_what_it_says() -> None:
    """tests/conformance/interface.md, "Authentication"; an API key may also read when it has that scope."""
    paths = openapi.document(api_routes.ROUTES, version="0")["paths"]
    assert paths["/emails"]["post"]["security"] == [{"basic": []}, {"api_key": ["send"]}, {"token": []}]
    assert paths["/emails/{id}"]["get"]["security"] == [{"basic": []}, {"api_key": ["read"]}, {"token": []}]
    of_webhooks = [operation for path, item in paths.items() if "webhook" in path for operation in item.values()]
    assert len(of_webhooks) == 22
    assert all(operation["security"] == [{"api_key": ["webhooks"]}, {"token": []}] for operation in of_webhooks)
    assert paths["/v1/test-email"]["post"]["security"] == [{"api_key": ["send"]}, {"token": []}]


def test_every_route_of_the_management_belongs_to_a_scope() -> None:
    """An API key manages what its scopes name; only a user's own login, and how users log in, have none."""
    found: dict[str, set[str]] = {}
    for route in api_routes.ROUTES:
        if route.path.startswith("/v1/") and route.permission is not None:
            resource = route.path.split("/")[2]
            found.setdefault(resource, set()).add(str(route.key_scope))
    assert found == {
        "account": {"statistics", "None"},
        "api-keys": {"team"},
        "audit-log": {"team"},
        "auth": {"None"},
        "credentials": {"team"},
        "domains": {"domains"},
        "event-schemas": {"webhooks"},
        "messages": {"read", "send"},
        "sso": {"None"},
        "statistics": {"statistics"},
        "suppressions": {"suppressions"},
        "team": {"team"},
        "templates": {"templates"},
        "test-email": {"send"},
        "webhook": {"webhooks"},
        "webhook-listeners": {"webhooks"},
        "webhooks": {"webhooks"},
    }
    changing = [route for route in api_routes.ROUTES if route.path.startswith("/v1/messages") and route.method != "GET"]
    assert {(route.path, str(route.key_scope)) for route in changing} == {
        ("/v1/messages/{id}/resend", "send"),
        ("/v1/messages/{id}/retry", "send"),
    }
