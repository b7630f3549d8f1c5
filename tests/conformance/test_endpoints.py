"""The interface, "Endpoints": `X-Request-ID` on every response, the headers of a send, and each endpoint's statuses."""

import json
import re
from collections.abc import Callable

import httpx
import pytest

from tests import raw_http
from tests.conformance import live_service

REQUEST_ID = re.compile(r"req_[0-9a-f]{28}")
Ask = Callable[[live_service.Service], httpx.Response]


def manage(service: live_service.Service, method: str, path: str, body: object = None) -> httpx.Response:
    return service.client.request(method, path, json=body, headers={"Authorization": service.mine.owner})


def revoke_something(service: live_service.Service) -> httpx.Response:
    made = manage(service, "POST", "/v1/credentials", {"name": "Short-lived"}).json()["credential"]["id"]
    return manage(service, "DELETE", f"/v1/credentials/{made}")


RESPONSES: dict[str, tuple[int, Ask]] = {
    "an accepted send": (202, lambda service: service.post(live_service.message())),
    "a message": (200, lambda service: service.get(f"/emails/{service.accept()['id']}")),
    "a thing that was made": (201, lambda service: manage(service, "POST", "/v1/credentials", {"name": "A"})),
    "no content": (204, revoke_something),
    "a file": (
        200,
        lambda service: manage(service, "GET", f"/v1/messages/{service.accept()['id']}/raw"),
    ),
    "an invalid request": (400, lambda service: service.post(b"{")),
    "no credential": (401, lambda service: service.client.post("/emails")),
    "a forbidden sender": (403, lambda service: service.post(live_service.message(from_="a@example.org"))),
    "an unknown message": (404, lambda service: service.get("/emails/em_0")),
    "an unknown path": (404, lambda service: service.client.get("/no/such/path")),
    "an unknown method": (405, lambda service: service.client.put("/emails")),
    "a strange method": (405, lambda service: service.client.request("OPTIONS", "/emails")),
    "a body that is too large": (
        413,
        lambda service: service.client.post(
            "/v1/credentials", content=b" " * 1_100_000, headers={"Authorization": service.mine.owner}
        ),
    ),
    "health": (200, lambda service: service.client.get("/healthz")),
    "readiness": (200, lambda service: service.client.get("/readyz")),
    "the description": (200, lambda service: service.client.get("/openapi.json")),
    "the documentation": (200, lambda service: service.client.get("/docs")),
    "HEAD": (
        200,
        lambda service: service.client.head(
            f"/emails/{service.accept()['id']}", headers={"Authorization": service.mine.basic}
        ),
    ),
}


@pytest.mark.parametrize("kind", RESPONSES)
def test_every_response_carries_its_request_id(service: live_service.Service, kind: str) -> None:
    """Every response carries `X-Request-ID`; its value equals `request_id` in the body."""
    status, ask = RESPONSES[kind]
    first, second = ask(service), ask(service)
    for response in (first, second):
        assert response.status_code == status, response.text
        assert REQUEST_ID.fullmatch(response.headers["x-request-id"])
        if response.content and response.headers["content-type"] == live_service.JSON and kind != "the description":
            assert response.json()["request_id"] == response.headers["x-request-id"]
        if status >= 400:
            assert set(response.json()) == live_service.ERROR_MEMBERS
    assert first.headers["x-request-id"] != second.headers["x-request-id"]


@pytest.mark.parametrize(
    "request_",
    [
        b"GARBAGE\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/9.9\r\nHost: x\r\n\r\n",
        b"POST /emails HTTP/1.1\r\nHost: x\r\nContent-Length: x\r\n\r\n",
        b"POST /emails HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nbad header\r\n\r\n",
    ],
)
async def test_what_is_no_request_gets_a_request_id_too(service: live_service.Service, request_: bytes) -> None:
    """Every response: also to bytes that are not HTTP, with the error object."""
    response = await raw_http.exchange(service.address, request_)
    body = response.json()
    assert (response.status, body["code"]) == (400, "invalid_request")
    assert set(body) == live_service.ERROR_MEMBERS
    assert body["request_id"] == response.headers["x-request-id"]


def test_the_service_makes_the_request_id_itself(service: live_service.Service) -> None:
    """`X-Request-ID`: one sent by a caller is ignored."""
    mine = "req_" + 28 * "0"
    response = service.post(live_service.message(), headers={"X-Request-ID": mine})
    assert response.headers["x-request-id"] != mine


# Sending


@pytest.mark.parametrize(
    "kind", ["application/json", "application/json; charset=utf-8", "Application/JSON", "application/json ;x=y"]
)
def test_content_type_is_json(service: live_service.Service, kind: str) -> None:
    """Headers: `Content-Type: application/json`, required; parameters are fine."""
    assert service.post(live_service.message(), headers={"Content-Type": kind}).status_code == 202


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "application/jsonp", "json", "", "*/*"]
)
def test_another_content_type_is_an_invalid_request(service: live_service.Service, kind: str) -> None:
    """Headers: `Content-Type: application/json`, required; a wrong one is 400, there is no 415."""
    response = service.post(live_service.message(), headers={"Content-Type": kind})
    assert live_service.check_refusal(response, 400, "invalid_request").startswith("Content-Type: ")


def test_a_missing_content_type_is_an_invalid_request(service: live_service.Service) -> None:
    """Headers: `Content-Type` is required."""
    fields = {"Authorization": service.mine.basic, "Idempotency-Key": live_service.new_key()}
    request = service.client.build_request("POST", "/emails", content=b"{}", headers=fields)
    assert "content-type" not in request.headers
    live_service.check_refusal(service.client.send(request), 400, "invalid_request")


def test_checks_come_in_their_order(service: live_service.Service) -> None:
    """Of several faults the first in order is reported: credential, size, content type, key, JSON, fields, sender."""
    long_key = "x" * 256
    bad_fields, bad_sender = {"from": "a@example.org", "to": "bob@"}, live_service.message(from_="a@example.org")
    steps: list[tuple[str, str, str, bytes, tuple[int, str, str]]] = [
        ("Bearer x", "text/plain", long_key, b"{", (401, "unauthorized", "Authorization")),
        (service.mine.basic, "text/plain", long_key, b"{", (400, "invalid_request", "Content-Type")),
        (service.mine.basic, live_service.JSON, long_key, b"{", (400, "invalid_request", "Idempotency-Key")),
        (service.mine.basic, live_service.JSON, "k", b"{", (400, "invalid_request", "body")),
        (service.mine.basic, live_service.JSON, "k", json.dumps(bad_fields).encode(), (400, "invalid_request", "to")),
        (service.mine.basic, live_service.JSON, "k", json.dumps(bad_sender).encode(), (403, "forbidden", "from")),
    ]
    for authorization, kind, key, body, (status, code, place) in steps:
        response = service.post(body, key=key, authorization=authorization, headers={"Content-Type": kind})
        assert live_service.check_refusal(response, status, code).startswith(f"{place}: ")


def test_a_refused_body_does_not_spoil_the_connection(sqlite_service: live_service.Service) -> None:
    """Error statuses, 413: the caller reads its answer, and the next request on the same connection is answered."""
    owner = {"Authorization": sqlite_service.mine.owner}
    with httpx.Client(base_url=sqlite_service.base_url, timeout=10) as client:
        for _ in range(30):
            refused = client.post("/v1/credentials", content=b" " * 1_100_000, headers=owner)
            live_service.check_refusal(refused, 413, "payload_too_large")
            assert client.get("/healthz").status_code == 200


def test_success_is_202_with_json(service: live_service.Service) -> None:
    """Success: 202 with the send response; never cached, and with the rate that is left."""
    response = service.post(live_service.message())
    assert (response.status_code, response.headers["content-type"]) == (202, "application/json")
    assert response.headers["cache-control"] == "no-store"
    assert {"ratelimit", "ratelimit-policy"} <= set(response.headers)


def test_what_was_accepted_survives_the_process(service: live_service.Service) -> None:
    """A 202 means accepted: another process finds the message in the store."""
    before = service.counts()["messages"]
    service.accept()
    assert service.counts()["messages"] == before + 1


# Reading a message


def test_reading_takes_no_body_and_ignores_a_query(service: live_service.Service) -> None:
    """Request body: none; the path alone says what is asked for."""
    message_id = service.accept()["id"]
    response = service.get(f"/emails/{message_id}?expand=everything")
    assert response.json()["id"] == message_id


@pytest.mark.parametrize("method", ["DELETE", "PUT", "POST"])
def test_there_are_no_other_methods(service: live_service.Service, method: str) -> None:
    """Under "Endpoints": POST on the collection and GET on the message; anything else is 405 and says what there is.

    PATCH stands beside the interface: it moves a message that its sender has scheduled.
    """
    response = service.client.request(method, f"/emails/{service.accept()['id']}")
    live_service.check_refusal(response, 405, "invalid_request")
    assert response.headers["allow"] == "GET, HEAD, PATCH"


@pytest.mark.parametrize(
    "path", ["/emails/", "/emails//", "/Emails", "/v1/emails", "/emails/a/b", "//emails", "/emails%2f"]
)
def test_there_are_no_other_paths(service: live_service.Service, path: str) -> None:
    """Under "Versioning": email endpoints have no version segment, and no second spelling."""
    host, port = service.address
    response = service.client.get(f"http://{host}:{port}{path}", headers={"Authorization": service.mine.basic})
    assert live_service.check_refusal(response, 404, "not_found")


def test_reading_has_only_its_documented_statuses(service: live_service.Service) -> None:
    """Error statuses: 401 and 404, each with the error object."""
    message_id = service.accept()["id"]
    statuses = {
        service.get(f"/emails/{message_id}").status_code,
        service.get("/emails/x").status_code,
        service.client.get(f"/emails/{message_id}").status_code,
    }
    assert statuses == {200, 401, 404}
