"""Every response has its id, its safety fields and, when refused, the error object."""

import json
from typing import Any

import msgspec
import pytest

from postroad import errors
from postroad.model.people import callers
from postroad.web import routing


class Thing(msgspec.Struct):
    name: str
    request_id: str


def fields(response: routing.EncodedResponse) -> dict[str, str]:
    found = {name.decode(): value.decode() for name, value in response[1]}
    assert len(found) == len(response[1])
    return found


def test_a_struct_is_answered_as_json_that_nobody_keeps() -> None:
    response = routing.success(routing.Response(201, Thing("é", "req_1")), request_id="req_1")
    assert response[0] == 201
    assert json.loads(response[2]) == {"name": "é", "request_id": "req_1"}
    assert fields(response) == {
        "content-type": "application/json",
        "content-length": str(len(response[2])),
        "x-request-id": "req_1",
        "cache-control": "no-store",
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
    }


def test_stored_bytes_are_answered_as_they_are_with_their_own_id() -> None:
    answer = routing.Response(202, b'{"request_id": "req_0" }', (("Idempotent-Replayed", "true"),), request_id="req_0")
    response = routing.success(answer, request_id="req_1")
    assert response[2] == b'{"request_id": "req_0" }'
    assert fields(response)["x-request-id"] == "req_0"
    assert fields(response)["idempotent-replayed"] == "true"


def test_no_content_has_no_length_and_no_type() -> None:
    response = routing.success(routing.Response(204), request_id="req_1")
    assert response[2] == b""
    assert not {"content-length", "content-type"} & fields(response).keys()
    assert fields(response)["cache-control"] == "no-store"


def test_another_answer_without_content_says_so() -> None:
    assert fields(routing.success(routing.Response(202), request_id="req_1"))["content-length"] == "0"


def test_what_is_not_json_can_neither_run_nor_be_framed() -> None:
    answer = routing.Response(200, b"<script>", content_type="message/rfc822")
    found = fields(routing.success(answer, request_id="req_1"))
    assert found["content-type"] == "message/rfc822"
    assert found["content-security-policy"] == "default-src 'none'; frame-ancestors 'none'"
    assert found["x-content-type-options"] == "nosniff"
    assert found["cache-control"] == "no-store"


def test_a_handler_may_set_its_own_policy_and_keeping() -> None:
    own = (("Content-Security-Policy", "default-src 'self'"), ("Cache-Control", "max-age=1"))
    found = fields(routing.success(routing.Response(200, b"", own, "text/html"), request_id="req_1"))
    assert found["content-security-policy"] == "default-src 'self'"
    assert found["cache-control"] == "max-age=1"


def test_a_refusal_is_the_error_object() -> None:
    response = routing.refusal(errors.Conflict("there is one"), request_id="req_1")
    assert response[0] == 409
    assert json.loads(response[2]) == {"error": "there is one", "code": "conflict", "request_id": "req_1"}
    assert fields(response)["x-request-id"] == "req_1"
    assert fields(response)["cache-control"] == "no-store"


def test_a_refusal_says_when_to_come_back() -> None:
    response = routing.refusal(errors.RateLimited("slower", retry_after=7), request_id="req_1")
    assert fields(response)["retry-after"] == "7"


def test_a_refusal_carries_what_its_handler_adds() -> None:
    refusal = errors.WarmupLimited("tomorrow", retry_after=7)
    refusal.headers = (("RateLimit", '"account";r=3;t=1'),)
    assert fields(routing.refusal(refusal, request_id="req_1"))["ratelimit"] == '"account";r=3;t=1'


def test_a_wrong_method_hears_the_right_ones() -> None:
    response = routing.refusal(errors.MethodNotAllowed("no", allowed=("GET", "HEAD")), request_id="req_1")
    assert response[0] == 405
    assert fields(response)["allow"] == "GET, HEAD"


@pytest.mark.parametrize(
    "permission, schemes",
    [
        (callers.Permission.SEND, ["Basic", "Bearer"]),
        (callers.Permission.READ, ["Basic", "Bearer"]),
        (callers.Permission.VIEW, ["Bearer"]),
        (callers.Permission.CHANGE, ["Bearer"]),
        (None, ["Bearer"]),
    ],
)
def test_a_401_asks_for_what_the_route_takes(permission: callers.Permission | None, schemes: list[str]) -> None:
    challenge = routing.challenges(permission)
    response = routing.refusal(errors.Unauthorized("who?"), request_id="req_1", challenge=challenge)
    values = [value.decode() for name, value in response[1] if name == b"www-authenticate"]
    assert [value.split()[0] for value in values] == schemes


class Nameless(msgspec.Struct):
    name: str


@pytest.mark.parametrize("kind", [Nameless, list[str], dict])
def test_a_json_answer_without_a_request_id_does_not_start(kind: Any) -> None:  # noqa: ANN401 - any wrong type
    async def handler(_context: object, _request: routing.Request) -> routing.Response:
        return routing.Response(204)

    route: routing.Route[object] = routing.Route(
        method="GET", path="/", handler=handler, summary="", tag="", permission=None, responses={200: kind}
    )
    with pytest.raises(TypeError, match="request_id"):
        routing.check(route)
