"""Whoever is not an operator reaches nothing of `/v1/operator`, and learns nothing about ids."""

import json
import re
from pathlib import Path

from postroad.api import openapi
from postroad.api import routes as api_routes
from postroad.api.operator import routes
from postroad.model.people import callers
from tests.api.operator.conftest import ALL_ROUTES, Operator

PAGE = (Path(__file__).parents[3] / "docs" / "operator.md").read_text()
ALL = ALL_ROUTES


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
