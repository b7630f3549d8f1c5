"""Whoever is not an operator reaches nothing of `/v1/operator`, and learns nothing about ids."""

import json
import re
from pathlib import Path

from postroad import context
from postroad.api import openapi
from postroad.api import routes as api_routes
from postroad.api.operator import routes
from postroad.model.people import callers
from postroad.services.people import api_keys, credentials, users
from postroad.web import routing
from tests.api import management
from tests.api.operator.conftest import ALL_ROUTES, Client, Operator

PAGE = (Path(__file__).parents[3] / "docs" / "operator.md").read_text()
ALL = ALL_ROUTES


def asked(route: routing.Route[context.Context], value: str) -> str:
    return re.sub(r"\{\w+\}", value, route.path)


async def test_others_are_refused_before_anything_is_looked_up(
    ctx: context.Context, mine: management.AccountClients, theirs: management.AccountClients
) -> None:
    assert len(ALL) > 14
    for route in ALL:
        answers = []
        for value in (theirs.account_id, "acc_00000000000000ffffffffffffff", "nonsense"):
            answer = await mine.owner.request(route.method, asked(route, value), json={"no": "such member"})
            answers.append((answer.status_code, answer.json()["code"], answer.json()["error"]))
        assert set(answers) == {(403, "forbidden", "only operators of this installation may do this")}, route.path
        assert (await mine.nobody.request(route.method, asked(route, "x"))).status_code == 401, route.path


async def test_a_key_needs_the_scope_which_a_key_for_everything_does_not_have(
    ctx: context.Context, mine: management.AccountClients, client: Client
) -> None:
    await credentials.create(ctx, mine.account_id, "app")
    for scopes, expected in (({"*"}, 401), ({"send", "team"}, 401), ({"operator"}, 200)):
        _, secret = await api_keys.create(ctx, mine.account_id, credential_id=None, name="x", scopes=frozenset(scopes))
        http = await client(f"Bearer {secret}")
        assert (await http.get("/v1/operator/health")).status_code == expected


async def test_a_former_operator_is_refused(ctx: context.Context, operator: Operator) -> None:
    assert (await operator.http.get("/v1/operator/operators")).status_code == 200
    await users.remove_operator(ctx, operator.user_id)
    assert (await operator.http.get("/v1/operator/operators")).status_code == 403


def test_every_route_requires_the_role_or_the_scope() -> None:
    assert {(route.permission, route.key_scope) for route in ALL} == {
        (callers.Permission.OPERATE, callers.Scope.OPERATOR)
    }


def test_every_endpoint_is_documented_and_no_other() -> None:
    lines = re.findall(r"^- [A-Z][^:`]+: (`[A-Z]+ /v1/operator/.+)$", PAGE, re.MULTILINE)
    documented = [endpoint for line in lines for endpoint in re.findall(r"`([^`]+)`", line)]
    assert sorted(documented) == sorted(f"{route.method} {route.path}" for route in ALL)


async def test_the_document_describes_every_endpoint_by_a_name_of_its_own(operator: Operator) -> None:
    answer = await operator.http.get("/v1/operator/openapi.json")
    assert answer.status_code == 200, answer.text
    document = answer.json()
    named = {
        f"{method.upper()} {path}": operation["operationId"]
        for path, item in document["paths"].items()
        for method, operation in item.items()
    }
    assert named == routes.OPERATION_IDS
    assert len(set(named.values())) == len(named)
    assert all(operation["summary"] for item in document["paths"].values() for operation in item.values())
    assert "webhooks" not in document
    # Each reference leads somewhere.
    for name in re.findall(r'"#/components/(\w+/\w+)"', json.dumps(document)):
        kind, _, key = name.partition("/")
        assert key in document["components"][kind], name


def test_the_document_of_accounts_has_none_of_it() -> None:
    assert not any("operator" in path for path in openapi.document(api_routes.ROUTES, version="0")["paths"])
