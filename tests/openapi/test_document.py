"""The document of the whole service: valid, complete, and written for its readers."""

import json
import os
import re
from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import msgspec
import pytest
import schemathesis

from postroad import build_version, context, errors
from postroad.api import monitoring, openapi
from postroad.api import routes as api_routes
from postroad.api.v1 import inbox
from postroad.model.events import events
from postroad.services.messages import dev_inbox
from postroad.web import routing
from tests import test_errors
from tests.conformance import live_service

ROUTES = (*api_routes.ROUTES, *monitoring.health_routes(lambda: False))
DOCUMENT: dict[str, Any] = msgspec.json.decode(
    msgspec.json.encode(openapi.document(ROUTES, version=build_version.current()))
)
SCHEMAS: dict[str, Any] = DOCUMENT["components"]["schemas"]
OPERATIONS: dict[str, dict[str, Any]] = {
    f"{method.upper()} {path}": operation
    for path, item in DOCUMENT["paths"].items()
    for method, operation in item.items()
}
# Words of the code, and not of its callers.
INTERNAL = re.compile(r"(Struct|Body|Answer|Query|Row|View|Type)$|_")
REFERENCE = "#/components/schemas/"
RESPONSES: dict[str, Any] = DOCUMENT["components"]["responses"]
RESPONSE = "#/components/responses/"


def parts(value: object) -> Iterator[dict[str, Any]]:
    """Every object of a document."""
    if isinstance(value, dict):
        yield value
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from parts(part)


def bodies() -> dict[str, dict[str, Any]]:
    """What operations take as JSON."""
    return {
        name: operation["requestBody"]["content"]["application/json"]["schema"]
        for name, operation in OPERATIONS.items()
        if "application/json" in operation.get("requestBody", {}).get("content", {})
    }


def test_a_running_service_gives_out_this_document(sqlite_service: live_service.Service) -> None:
    assert sqlite_service.client.get("/openapi.json").json() == DOCUMENT


def test_the_document_is_valid_openapi_and_every_schema_valid_json_schema() -> None:
    assert DOCUMENT["openapi"].startswith("3.1")
    schemathesis.openapi.from_dict(DOCUMENT).validate()
    for schema in SCHEMAS.values():
        jsonschema_rs.meta.validate({"$schema": "https://json-schema.org/draft/2020-12/schema", **schema})


def test_every_route_is_in_it_and_no_other() -> None:
    assert list(OPERATIONS) == [f"{route.method} {route.path}" for route in ROUTES]


def test_every_operation_has_the_id_that_clients_know_it_by() -> None:
    """The ids are in a literal table, so that none changes by accident."""
    described = (*ROUTES, *inbox.routes(dev_inbox.Inbox(clock=lambda: 0, entropy=os.urandom)))
    expected = {f"{route.method} {route.path}" for route in described}
    assert api_routes.OPERATION_IDS.keys() == expected
    ids = [*api_routes.OPERATION_IDS.values()]
    of_webhooks = [item["post"]["operationId"] for item in DOCUMENT["webhooks"].values()]
    assert [one for one in (*ids, *of_webhooks) if not re.fullmatch(r"[a-z]+([A-Z][a-z]+)*", one)] == []
    assert len({*ids, *of_webhooks}) == len(ids) + len(of_webhooks)
    assert {name: operation["operationId"] for name, operation in OPERATIONS.items()} == {
        name: api_routes.OPERATION_IDS[name] for name in OPERATIONS
    }


def test_every_event_type_is_a_webhook_with_the_schema_of_its_events() -> None:
    assert list(DOCUMENT["webhooks"]) == [kind.value for kind in events.EventType]
    bodies = {kind: item["post"]["requestBody"]["content"] for kind, item in DOCUMENT["webhooks"].items()}
    assert bodies["email.deferred"] == {"application/json": {"schema": {"$ref": REFERENCE + "EmailDeferredEvent"}}}
    of_versions = [{"$ref": REFERENCE + f"EmailBouncedEventV{version}"} for version in (1, 2)]
    assert bodies["email.bounced"] == {"application/json": {"schema": {"anyOf": of_versions}}}
    (served,) = events.schema_of_type(events.EventType.DEFERRED)
    assert SCHEMAS["EmailDeferredEvent"]["properties"] == served.schema["properties"]


def test_every_code_is_documented_somewhere() -> None:
    documented = {
        code for part in parts(SCHEMAS) if isinstance(part.get("code"), dict) for code in part["code"].get("enum", ())
    }
    assert documented == test_errors.by_code().keys()


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")
def test_every_status_of_a_route_is_documented(route: routing.Route[context.Context]) -> None:
    listed = OPERATIONS[f"{route.method} {route.path}"]["responses"]
    refusals: set[type[errors.PostroadError]] = {*route.errors, *openapi.refusals(route)}
    assert listed.keys() >= {str(status) for status in (*route.responses, *(refusal.status for refusal in refusals))}
    for refusal in refusals:
        reference = listed[str(refusal.status)]["$ref"]
        assert f"`{refusal.code}`" in RESPONSES[reference.removeprefix(RESPONSE)]["description"]


@pytest.mark.parametrize(
    "name, statuses",
    [
        ("POST /emails", "202 400 401 402 403 409 413 429 500 503"),
        ("GET /emails/{id}", "200 401 404 500 503"),
    ],
)
def test_the_statuses_of_sending_and_reading_are_those_of_the_interface(name: str, statuses: str) -> None:
    assert list(OPERATIONS[name]["responses"]) == statuses.split()


def test_every_reference_leads_somewhere_and_every_schema_is_referred_to() -> None:
    references = {part["$ref"] for part in parts(DOCUMENT) if "$ref" in part}
    assert references == {REFERENCE + name for name in SCHEMAS} | {RESPONSE + name for name in RESPONSES}


def test_names_of_schemas_are_words_of_callers() -> None:
    assert [name for name in SCHEMAS if INTERNAL.search(name) or not name[0].isupper()] == []


def test_everything_that_a_reader_meets_is_described() -> None:
    described = {
        "tags": {tag["name"]: tag.get("description") for tag in DOCUMENT["tags"]},
        "operations": {name: operation["description"] for name, operation in OPERATIONS.items()},
        "schemas": {name: schema.get("description") for name, schema in SCHEMAS.items()},
        "parameters": {
            f"{name} {parameter['name']}": parameter.get("description")
            for name, operation in OPERATIONS.items()
            for parameter in operation["parameters"]
        },
        "members of a send": {
            name: member.get("description") for name, member in SCHEMAS["SendRequest"]["properties"].items()
        },
        "headers": {
            header: meaning.get("description")
            for part in parts([DOCUMENT["paths"], RESPONSES])
            for header, meaning in part.get("headers", {}).items()
        },
        "schemes": {name: scheme["description"] for name, scheme in openapi.SECURITY_SCHEMES.items()},
    }
    for kind, texts in described.items():
        assert {name: text for name, text in texts.items() if not (text or "").endswith(".")} == {}, kind


def test_a_summary_is_a_short_line() -> None:
    summaries = [operation["summary"] for operation in OPERATIONS.values()]
    assert len(set(summaries)) == len(summaries)
    assert [text for text in summaries if not (3 <= len(text) <= 60 and text[0].isupper() and text[-1] != ".")] == []


@pytest.mark.parametrize("name", bodies())
def test_a_body_has_examples_that_its_own_schema_accepts(name: str) -> None:
    validator = jsonschema_rs.validator_for({**bodies()[name], "components": {"schemas": SCHEMAS}})
    examples = SCHEMAS[bodies()[name]["$ref"].removeprefix(REFERENCE)]["examples"]
    assert examples
    assert [example for example in examples if not validator.is_valid(example)] == []


def test_the_document_stays_small_enough_to_read() -> None:
    assert len(json.dumps(DOCUMENT)) < 350_000
    patterns = [part["pattern"] for part in parts(DOCUMENT) if isinstance(part.get("pattern"), str)]
    long = [pattern for pattern in patterns if len(pattern) > 1000]
    assert len(long) == len(set(long)), "a long pattern stands in one place, which others refer to"
