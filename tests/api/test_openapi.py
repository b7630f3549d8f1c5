"""The document says what the routes do: every member, every bound, every status."""

import enum
from typing import Annotated, Any

import msgspec
import pytest
import schemathesis

from postroad import errors
from postroad.api import openapi
from postroad.model.people import callers
from postroad.model.units import identifiers
from postroad.web import routing


class Kind(enum.StrEnum):
    BIG = "big"
    SMALL = "small"


Colour = Annotated[str, msgspec.Meta(title="Colour", description="A colour.", extra_json_schema={"pattern": "^#"})]


class Note(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A note."""

    text: Annotated[str, msgspec.Meta(max_length=5, description="What it says.")]
    tag: Annotated[str, msgspec.Meta(extra_json_schema={"pattern": "^a"})] | None = None
    kind: Kind | None = None
    names: str | list[str] | None = None
    first: Annotated[Colour, msgspec.Meta(description="The first one.")] | None = None
    last: Colour | None = None
    others: list[Colour] | None = None
    # A member, and no title of the schema.
    title: str | None = None


class Filter(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    limit: Annotated[int, msgspec.Meta(ge=1, le=100)] | None = None
    kind: Kind | None = None


class Stored(msgspec.Struct, frozen=True):
    id: str
    gone_at: str | None
    request_id: str


async def handler(_context: object, _request: routing.Request) -> routing.Response:
    return routing.Response(204)


def route(method: str, path: str, permission: callers.Permission | None, **fields: Any) -> routing.Route[Any]:
    return routing.Route(
        method=method, path=path, handler=handler, summary="Do it", tag="Notes", permission=permission, **fields
    )


def refusal(document: dict[str, Any], method: str, path: str, status: str) -> dict[str, Any]:
    """The response that an operation refers to."""
    reference = document["paths"][path][method]["responses"][status]["$ref"]
    found: dict[str, Any] = document["components"]["responses"][reference.removeprefix("#/components/responses/")]
    return found


def responses(document: dict[str, Any], method: str, path: str) -> dict[str, dict[str, Any]]:
    """All responses of an operation."""
    return {
        status: refusal(document, method, path, status) if "$ref" in response else response
        for status, response in document["paths"][path][method]["responses"].items()
    }


ROUTES = (
    route(
        "POST",
        "/notes",
        callers.Permission.SEND,
        description="Keeps a note.",
        body=Note,
        body_rules={"anyOf": [{"required": ["tag"]}, {"required": ["kind"]}]},
        idempotent=True,
        responses={202: Stored},
        errors=(errors.RateLimited, errors.IdempotencyInProgress, errors.IdempotencyConflict),
        response_headers={"RateLimit": "What is left.", "Idempotent-Replayed": "Whether it was."},
    ),
    route("GET", "/notes", callers.Permission.VIEW, query=Filter, responses={200: Stored}),
    route(
        "DELETE",
        "/notes/{id}",
        callers.Permission.CHANGE,
        responses={204: None},
        path_patterns={"id": f"^note_{identifiers.PATTERN}$"},
    ),
    route(
        "POST", "/notes/{id}/touch", callers.Permission.READ, body=Note, body_required=False, responses={200: Stored}
    ),
    route("GET", "/raw", None, responses={200: bytes}, content_type="message/rfc822"),
    route(
        "POST", "/file", None, body=bytes, body_type="text/csv", body_rules={"examples": ["a"]}, responses={204: None}
    ),
)


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    written: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(openapi.document(ROUTES, version="1.2.3")))
    return written


def test_the_document_is_valid_openapi(document: dict[str, Any]) -> None:
    schema = schemathesis.openapi.from_dict(document)
    schema.validate()
    assert [f"{method.upper()} {path}" for path, item in document["paths"].items() for method in item] == [
        "POST /notes",
        "GET /notes",
        "DELETE /notes/{id}",
        "POST /notes/{id}/touch",
        "GET /raw",
        "POST /file",
    ]
    assert document["openapi"].startswith("3.1")
    assert document["info"]["version"] == "1.0.0"
    assert document["info"]["x-postroad-version"] == "1.2.3"


def test_a_body_is_described_by_the_struct_that_validates_it(document: dict[str, Any]) -> None:
    body = document["paths"]["/notes"]["post"]["requestBody"]
    assert body == {
        "required": True,
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Note"}}},
    }
    note = document["components"]["schemas"]["Note"]
    assert note["description"] == "A note."
    assert note["additionalProperties"] is False
    assert note["required"] == ["text"]
    assert note["properties"] == {
        "text": {"type": "string", "maxLength": 5, "description": "What it says."},
        "tag": {"type": ["string", "null"], "pattern": "^a"},
        "kind": {"anyOf": [{"$ref": "#/components/schemas/Kind"}, {"type": "null"}]},
        "names": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}, {"type": "null"}]},
        "first": {
            "anyOf": [
                {"$ref": "#/components/schemas/Colour", "description": "The first one."},
                {"type": "null"},
            ]
        },
        "last": {"anyOf": [{"$ref": "#/components/schemas/Colour"}, {"type": "null"}]},
        "others": {"type": ["array", "null"], "items": {"$ref": "#/components/schemas/Colour"}},
        "title": {"type": ["string", "null"]},
    }
    assert note["allOf"] == [{"anyOf": [{"required": ["tag"]}, {"required": ["kind"]}]}]


def test_a_type_with_a_title_stands_once_and_is_referred_to(document: dict[str, Any]) -> None:
    assert document["components"]["schemas"]["Colour"] == {
        "title": "Colour",
        "description": "A colour.",
        "type": "string",
        "pattern": "^#",
    }


def test_words_to_choose_from_are_strings(document: dict[str, Any]) -> None:
    assert document["components"]["schemas"]["Kind"]["type"] == "string"
    assert sorted(document["components"]["schemas"]["Kind"]["enum"]) == ["big", "small"]


def test_a_body_may_be_optional(document: dict[str, Any]) -> None:
    assert document["paths"]["/notes/{id}/touch"]["post"]["requestBody"]["required"] is False


def test_a_body_that_is_not_json_is_text_of_its_type(document: dict[str, Any]) -> None:
    content = {"text/csv": {"schema": {"type": "string", "examples": ["a"]}}}
    assert document["paths"]["/file"]["post"]["requestBody"] == {"required": True, "content": content}


def test_parameters_are_described(document: dict[str, Any]) -> None:
    assert document["paths"]["/notes"]["get"]["parameters"] == [
        {
            "name": "limit",
            "in": "query",
            "required": False,
            "schema": {"type": "integer", "minimum": 1, "maximum": 100},
        },
        {"name": "kind", "in": "query", "required": False, "schema": {"$ref": "#/components/schemas/Kind"}},
    ]
    assert document["paths"]["/notes/{id}"]["delete"]["parameters"] == [
        {
            "name": "id",
            "in": "path",
            "required": True,
            "description": "The id, as an earlier response returned it.",
            "schema": {"type": "string", "pattern": "^note_[0-9a-f]{28}$"},
        }
    ]
    (key,) = document["paths"]["/notes"]["post"]["parameters"]
    assert (key["name"], key["in"], key["required"]) == ("Idempotency-Key", "header", True)
    assert (key["schema"]["minLength"], key["schema"]["maxLength"]) == (1, 255)
    assert "Filter" not in document["components"]["schemas"]


@pytest.mark.parametrize(
    "method, path, statuses",
    [
        ("post", "/notes", "202 400 401 403 409 413 429 500 503"),
        ("get", "/notes", "200 400 401 429 500 503"),
        ("delete", "/notes/{id}", "204 401 403 404 429 500 503"),
        ("get", "/raw", "200 500 503"),
    ],
)
def test_every_status_is_described(document: dict[str, Any], method: str, path: str, statuses: str) -> None:
    assert list(document["paths"][path][method]["responses"]) == statuses.split()


def test_refusals_name_their_codes_and_are_shared(document: dict[str, Any]) -> None:
    conflict = refusal(document, "post", "/notes", "409")
    name = "IdempotencyInProgressOrIdempotencyConflictError"
    assert conflict["content"] == {"application/json": {"schema": {"$ref": f"#/components/schemas/{name}"}}}
    assert document["components"]["schemas"][name]["allOf"] == [
        {"$ref": "#/components/schemas/Error"},
        {"properties": {"code": {"enum": ["idempotency_in_progress", "idempotency_conflict"]}}},
    ]
    assert document["components"]["schemas"]["Error"]["required"] == ["error", "code", "request_id"]
    assert "Retry-After" in refusal(document, "post", "/notes", "429")["headers"]
    assert "Retry-After" in conflict["headers"]
    assert refusal(document, "post", "/notes", "401")["headers"]["WWW-Authenticate"]["required"] is True
    for path, method in (("/notes", "get"), ("/notes/{id}", "delete")):
        assert document["paths"][path][method]["responses"]["401"] == {"$ref": "#/components/responses/Unauthorized"}


def test_what_is_left_of_a_rate_is_in_refusals_as_well(document: dict[str, Any]) -> None:
    of_send = responses(document, "post", "/notes")
    reported = {status: "RateLimit" in response["headers"] for status, response in of_send.items()}
    assert {status for status, is_documented in reported.items() if not is_documented} == {"401", "500"}
    assert {"202", "409", "429"} < reported.keys()
    assert [status for status, response in of_send.items() if "Idempotent-Replayed" in response["headers"]] == ["202"]
    others = responses(document, "get", "/notes").values()
    assert not any("RateLimit" in response["headers"] for response in others)


def test_every_response_carries_the_request_id(document: dict[str, Any]) -> None:
    for path, item in document["paths"].items():
        for method in item:
            for response in responses(document, method, path).values():
                assert response["headers"]["X-Request-ID"]["required"] is True


def test_answers_are_described(document: dict[str, Any]) -> None:
    responses = document["paths"]["/notes"]["post"]["responses"]
    assert responses["202"]["content"] == {"application/json": {"schema": {"$ref": "#/components/schemas/Stored"}}}
    assert "Idempotent-Replayed" in responses["202"]["headers"]
    assert document["components"]["schemas"]["Stored"]["properties"]["gone_at"] == {"type": ["string", "null"]}
    assert "content" not in document["paths"]["/notes/{id}"]["delete"]["responses"]["204"]
    assert list(document["paths"]["/raw"]["get"]["responses"]["200"]["content"]) == ["message/rfc822"]


def test_a_route_says_which_credentials_it_takes(document: dict[str, Any]) -> None:
    assert document["paths"]["/notes"]["post"]["security"] == [{"basic": []}, {"api_key": ["send"]}, {"token": []}]
    assert document["paths"]["/notes"]["get"]["security"] == [{"token": []}]
    assert document["paths"]["/raw"]["get"]["security"] == []
    assert document["components"]["securitySchemes"].keys() == {"basic", "api_key", "token"}
