"""The application as a client sees it: real sockets, every refusal with its id, no secrets in responses or log."""

import asyncio
import re
import time
import types
from typing import Annotated, Any

import msgspec
import pytest

from postroad import errors
from postroad.concurrency import fairness
from postroad.model.people import callers, login_rules
from postroad.network.http import http_messages
from postroad.web import application, local_api, routing
from tests import local_requests, raw_http
from tests.api import app_server
from tests.raw_http import get, post

MEMBER = "Authorization: Bearer member"
KEY = "Idempotency-Key: k"
LIMIT = 1000
CHUNKED = get("/notes", MEMBER, KEY, "Content-Type: application/json", "Transfer-Encoding: chunked", method="POST")


class Note(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    text: str
    note: str | None = None


class Filter(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    limit: Annotated[int, msgspec.Meta(ge=1)] | None = None


class Seen(msgspec.Struct, frozen=True):
    path: dict[str, str]
    account_id: str | None
    text: str | None
    limit: int | None
    key: str
    client_address: str
    request_id: str


async def show(_context: object, request: routing.Request) -> routing.Response:
    return routing.Response(
        200,
        Seen(
            path=dict(request.path),
            account_id=request.authenticated.account_id if request.authenticated else None,
            text=request.body.text if request.body else None,
            limit=request.query.limit if request.query else None,
            key=request.idempotency_key,
            client_address=request.client_address,
            request_id=request.id,
        ),
    )


async def replay(_context: object, _request: routing.Request) -> routing.Response:
    headers = (("Idempotent-Replayed", "true"),)
    return routing.Response(202, b'{"id":"em_1","request_id":"req_first"}', headers, request_id="req_first")


async def accept(_context: object, request: routing.Request) -> routing.Response:
    return routing.Response(int(request.path["status"]), b"{}", is_accepted=request.path["status"] == "200")


async def count(context: Any, request: routing.Request) -> routing.Response:  # noqa: ANN401 - the test's own list
    context.append(request.path["name"])
    return routing.Response(204)


async def fail(_context: object, _request: routing.Request) -> routing.Response:
    raise ZeroDivisionError("the password is hunter2")


async def wait(context: Any, _request: routing.Request) -> routing.Response:  # noqa: ANN401 - the test's own events
    context["started"].set()
    await context["go_on"].wait()
    return routing.Response(204)


async def unavailable(_context: object, _request: routing.Request) -> routing.Response:
    raise errors.ServiceUnavailable("not yet", retry_after=1)


async def limited(_context: object, _request: routing.Request) -> routing.Response:
    raise errors.RateLimited("slower, please", retry_after=3)


async def download(_context: object, _request: routing.Request) -> routing.Response:
    return routing.Response(200, b"Subject: hi\r\n\r\n", content_type="message/rfc822")


def route(method: str, path: str, handler: routing.Handler[Any], **fields: Any) -> routing.Route[Any]:
    defaults = {"permission": None, "responses": {200: Seen}, "summary": "", "tag": ""}
    return routing.Route(method=method, path=path, handler=handler, **{**defaults, **fields})


ROUTES = (
    route(
        "POST",
        "/notes",
        show,
        permission=callers.Permission.SEND,
        body=Note,
        body_limit=LIMIT,
        idempotent=True,
    ),
    route("GET", "/notes", show, permission=callers.Permission.VIEW, query=Filter),
    route("GET", "/notes/{id}", show, permission=callers.Permission.READ),
    route("POST", "/notes/{id}/change", show, permission=callers.Permission.CHANGE),
    route("GET", "/public", show),
    route("POST", "/replay", replay, responses={202: bytes}),
    route("POST", "/replayed", replay, permission=callers.Permission.SEND, idempotent=True, responses={202: bytes}),
    route("POST", "/accepted/{status}", accept, permission=callers.Permission.SEND, idempotent=True),
    route("GET", "/count/{name}", count, responses={204: None}),
    route("GET", "/counted/{name}", count, permission=callers.Permission.VIEW, responses={204: None}),
    route("GET", "/file", show, pace=fairness.Pace.FILES),
    route("GET", "/probe", unavailable, is_probe=True),
    route("GET", "/fail", fail),
    route("GET", "/wait", wait, responses={204: None}),
    route("GET", "/limited", limited),
    route("GET", "/raw", download, responses={200: bytes}, content_type="message/rfc822"),
)


def assert_refused(response: raw_http.Response, status: int, code: str, about: str = "") -> None:
    """A refusal is the error object, and its id is the header's."""
    assert response.status == status, response
    assert response.json().keys() == {"error", "code", "request_id"}
    assert response.json()["code"] == code
    assert about in response.json()["error"]
    assert response.json()["request_id"] == response.headers["x-request-id"]
    assert re.match(app_server.REQUEST_ID, response.headers["x-request-id"])
    assert response.headers["cache-control"] == "no-store"
    assert response.headers["x-content-type-options"] == "nosniff"
    assert response.headers["content-type"] == "application/json"


async def test_a_handler_sees_what_was_sent() -> None:
    async with app_server.running(ROUTES) as opened:
        body = b'{"text": "hi", "note": null}'
        response = await raw_http.exchange(opened.address, post("/notes", body, MEMBER, KEY))
        assert response.status == 200
        assert response.json() == {
            "path": {},
            "account_id": "acc_test",
            "text": "hi",
            "limit": None,
            "key": "k",
            "client_address": "127.0.0.1",
            "request_id": response.headers["x-request-id"],
        }
        seen = (await raw_http.exchange(opened.address, get("/notes?limit=5", MEMBER))).json()
        assert seen["limit"] == 5
        seen = (await raw_http.exchange(opened.address, get("/notes/em_1?ignored=1", MEMBER))).json()
        assert seen["path"] == {"id": "em_1"}
        seen = (await raw_http.exchange(opened.address, get("/public"))).json()
        assert seen["account_id"] is None


async def test_ids_are_ours_and_new_every_time() -> None:
    async with app_server.running(ROUTES) as opened:
        request = get("/public", "X-Request-ID: req_0000000000000000000000000000")
        ids = {(await raw_http.exchange(opened.address, request)).headers["x-request-id"] for _ in range(10)}
        assert len(ids) == 10
        assert all(re.match(app_server.REQUEST_ID, one) and set(one[4:]) != {"0"} for one in ids)


@pytest.mark.parametrize(
    "request_bytes, status, code, about",
    [
        (get("/unknown"), 404, "not_found", "/docs"),
        (get("/"), 404, "not_found", ""),
        (get("*", method="OPTIONS"), 404, "not_found", ""),
        (get("/notes", method="DELETE"), 405, "invalid_request", "GET, HEAD, POST"),
        (get("/public", method="OPTIONS"), 405, "invalid_request", ""),
        (get("/notes"), 401, "unauthorized", ""),
        (get("/notes", "Authorization: Bearer wrong"), 401, "unauthorized", ""),
        (get("/notes", MEMBER, MEMBER), 401, "unauthorized", "Authorization: sent more than once"),
        (get("/notes?limit=0", MEMBER), 400, "invalid_request", "limit: at least 1"),
        (get("/notes?lmit=1", MEMBER), 400, "invalid_request", "lmit: unknown parameter"),
        (get("/notes/1/change", "Authorization: Bearer reader", method="POST"), 403, "forbidden", "role"),
        (get("/fail"), 500, "internal_error", "internal error"),
        (get("/limited"), 429, "rate_limited", "slower"),
        (post("/notes", b"{}", MEMBER, KEY, "Content-Encoding: gzip"), 400, "invalid_request", "uncompressed"),
        (post("/notes", b"{}", MEMBER), 400, "invalid_request", "Idempotency-Key: this header is required"),
        (post("/notes", b"{}", MEMBER, KEY, KEY), 400, "invalid_request", "Idempotency-Key: sent more than once"),
        (post("/notes", b"{", MEMBER, KEY), 400, "invalid_request", "body: "),
        (post("/notes", b"{}", MEMBER, KEY), 400, "invalid_request", "text: is required"),
        (post("/notes", b"x" * (LIMIT + 1), MEMBER, KEY), 413, "payload_too_large", f"{LIMIT} bytes"),
    ],
)
async def test_every_refusal_is_the_error_object(request_bytes: bytes, status: int, code: str, about: str) -> None:
    async with app_server.running(ROUTES) as opened:
        assert_refused(await raw_http.exchange(opened.address, request_bytes), status, code, about)


@pytest.mark.parametrize(
    "garbage",
    [b"garbage\r\n\r\n", get("/public", "X: " + "a" * 70_000), b"GET / HTTP/1.1\r\nHost: x\r\nHost: x\r\n\r\n"],
)
async def test_what_never_became_a_request_gets_the_error_object_too(garbage: bytes) -> None:
    async with app_server.running(ROUTES) as opened:
        response = await raw_http.exchange(opened.address, garbage)
        assert_refused(response, 400, "invalid_request")
        assert opened.lines[-1]["request_id"] == response.headers["x-request-id"]


async def test_refusals_carry_what_to_do_next() -> None:
    async with app_server.running(ROUTES) as opened:
        wrong = await raw_http.exchange(opened.address, get("/notes", method="DELETE"))
        assert wrong.headers["allow"] == "GET, HEAD, POST"
        later = await raw_http.exchange(opened.address, get("/limited"))
        assert later.headers["retry-after"] == "3"
        sent = await opened.client.get("/notes/1", headers={"Authorization": ""})
        assert sent.headers.get_list("www-authenticate") == [
            'Basic realm="postroad", charset="UTF-8"',
            'Bearer realm="postroad"',
        ]
        managed = await opened.client.get("/notes", headers={"Authorization": ""})
        assert managed.headers.get_list("www-authenticate") == ['Bearer realm="postroad"']


def bad_request(*, signed_in: bool, small: bool, typed: bool, keyed: bool) -> bytes:
    """A POST with some of its faults mended; what is not JSON stays so."""
    lines = ["POST /notes HTTP/1.1", "Host: x"]
    lines += [MEMBER] if signed_in else []
    lines += [f"Content-Length: {LIMIT if small else LIMIT + 1}"]
    lines += ["Content-Type: application/json"] if typed else ["Content-Type: text/plain"]
    lines += [KEY] if keyed else []
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + b"x" * (LIMIT if small else LIMIT + 1)


@pytest.mark.parametrize(
    "mended, status, about",
    [
        (0, 401, "credential"),
        (1, 413, "at most"),
        (2, 400, "Content-Type"),
        (3, 400, "Idempotency-Key"),
        (4, 400, "body: "),
    ],
)
async def test_checks_come_in_their_order(mended: int, status: int, about: str) -> None:
    async with app_server.running(ROUTES) as opened:
        request = bad_request(signed_in=mended > 0, small=mended > 1, typed=mended > 2, keyed=mended > 3)
        response = await raw_http.exchange(opened.address, request)
        assert response.status == status
        assert about in response.json()["error"]


async def test_a_body_within_the_limit_may_come_in_chunks() -> None:
    async with app_server.running(ROUTES) as opened, raw_http.connect(opened.address) as connection:
        await connection.send(CHUNKED)
        for octet in b'{"text": "hi"}':
            await connection.send(b"1\r\n%c\r\n" % octet)
            await asyncio.sleep(0)
        await connection.send(b"0\r\n\r\n")
        assert (await connection.response()).json()["text"] == "hi"


async def test_a_caller_that_expects_100_continue_is_refused_before_it_sends() -> None:
    async with app_server.running(ROUTES) as opened:
        expects = "Expect: 100-continue"
        async with raw_http.connect(opened.address) as connection:
            await connection.send(post("/notes", b"", MEMBER, KEY, expects, length=14))
            assert (await connection.response(has_body=False)).status == 100
            await connection.send(b'{"text": "hi"}')
            assert (await connection.response()).status == 200
        async with raw_http.connect(opened.address) as connection:
            await connection.send(post("/notes", b"", KEY, expects, length=14))
            refused = await connection.response()
            assert refused.status == 401
            assert refused.headers["connection"] == "close"
            assert await connection.rest() == b""


async def test_head_is_get_without_its_body() -> None:
    async with app_server.running(ROUTES) as opened, raw_http.connect(opened.address) as connection:
        await connection.send(get("/raw", method="HEAD"))
        head = await connection.response(has_body=False)
        assert head.headers["content-length"] == "15"
        await connection.send(get("/raw"))
        full = await connection.response()
        assert full.body == b"Subject: hi\r\n\r\n"
        assert full.headers.keys() == head.headers.keys()


async def test_a_replayed_answer_keeps_its_bytes_and_its_id() -> None:
    async with app_server.running(ROUTES) as opened:
        response = await opened.client.post("/replay")
        assert response.content == b'{"id":"em_1","request_id":"req_first"}'
        assert response.headers["x-request-id"] == "req_first"
        assert response.headers["idempotent-replayed"] == "true"


async def test_a_bug_is_logged_with_its_id_and_reveals_nothing_to_the_caller() -> None:
    async with app_server.running(ROUTES) as opened:
        response = await opened.client.get("/fail")
        assert response.status_code == 500
        assert "hunter2" not in response.text
        assert "ZeroDivision" not in response.text
        failed = next(line for line in opened.lines if line["event"] == "request_failed")
        assert failed["request_id"] == response.headers["x-request-id"]
        assert failed["level"] == "error"
        assert failed["exc_info"]
        assert (await opened.client.get("/public")).status_code == 200


async def test_a_probe_that_succeeds_is_logged_for_debugging_alone() -> None:
    probes = (route("GET", "/probe", show, is_probe=True), route("GET", "/failing", limited, is_probe=True))
    async with app_server.running(probes) as opened:
        for path in ("/probe", "/failing"):
            await opened.client.get(path)
        assert [(line["route"], line["level"]) for line in opened.lines] == [("/probe", "debug"), ("/failing", "info")]


async def test_each_request_is_one_line_without_its_words() -> None:
    async with app_server.running(ROUTES) as opened:
        response = await opened.client.get("/notes/secret-id?token=secret-query", headers={"X-Secret": "secret-field"})
        (line,) = opened.lines
        assert line.pop("duration_ms") >= 0
        assert line == {
            "event": "request",
            "level": "info",
            "request_id": response.headers["x-request-id"],
            "method": "GET",
            "route": "/notes/{id}",
            "status": 200,
            "account_id": "acc_test",
            "client_address": "127.0.0.1",
        }


async def test_refused_requests_are_logged_without_their_words() -> None:
    async with app_server.running(ROUTES) as opened:
        await opened.client.get("/secret-path?x=secret-query")
        await opened.client.post("/notes", content=b'{"secret-member": "secret"}', headers={"Content-Type": "secret/x"})
        await opened.client.get("/notes", headers={"Authorization": "Basic secret"})
        assert [(line["route"], line["status"]) for line in opened.lines] == [
            (None, 404),
            ("/notes", 400),
            ("/notes", 401),
        ]
        assert "secret" not in str(opened.lines)


async def test_a_caller_that_leaves_in_the_middle_leaves_a_line() -> None:
    async with app_server.running(ROUTES) as opened:
        async with raw_http.connect(opened.address) as connection:
            await connection.send(post("/notes", b"half", MEMBER, KEY, length=100))
        async with asyncio.timeout(raw_http.TIMEOUT_SECONDS):
            while not opened.lines:
                await asyncio.sleep(0.01)
        assert opened.lines[0]["status"] is None


async def test_the_end_of_the_grace_time_is_answered_as_unavailable() -> None:
    context = {"started": asyncio.Event(), "go_on": asyncio.Event()}
    async with app_server.running(ROUTES, context=context) as opened, raw_http.connect(opened.address) as connection:
        await connection.send(get("/wait"))
        await context["started"].wait()
        await opened.listener.stop(grace_seconds=0.05)
        response = await connection.response()
        assert_refused(response, 503, "service_unavailable")
        assert response.headers["retry-after"] == "1"


async def test_a_connection_too_many_hears_the_error_object() -> None:
    limits, context = http_messages.Limits(connections=1), {"started": asyncio.Event(), "go_on": asyncio.Event()}
    async with (
        app_server.running(ROUTES, limits=limits, context=context) as opened,
        raw_http.connect(opened.address) as first,
    ):
        await first.send(get("/wait"))
        await context["started"].wait()
        async with raw_http.connect(opened.address) as second:
            assert_refused(await second.response(), 503, "service_unavailable")
        context["go_on"].set()
        assert (await first.response()).status == 204


async def test_fifty_callers_at_once_get_their_own_answers() -> None:
    async with app_server.running(ROUTES) as opened:

        async def ask(number: int) -> bool:
            response = await opened.client.get(f"/notes/{number}")
            seen = response.json()
            return (seen["path"], seen["request_id"]) == ({"id": str(number)}, response.headers["x-request-id"])

        assert all(await asyncio.gather(*(ask(number) for number in range(50))))


ACCOUNT = "acc_test"
STRANGER = "127.0.0.1"
REFUSALS, REQUESTS, FILES, PROBES = fairness.Pace


def exhaust(delays: fairness.ResponseDelays, party: str, pace: fairness.Pace) -> None:
    """Ask for what many connections would have asked for by now, so that the next one waits for long."""
    limit = fairness.MAX_DELAY_SECONDS - 1
    while True:
        networks = login_rules.networks_around(party)
        if (delays.of_account(party, pace) if party == ACCOUNT else delays.of_stranger(networks, pace)) >= limit:
            return


@pytest.fixture
def delays(monkeypatch: pytest.MonkeyPatch) -> fairness.ResponseDelays:
    """Of two active accounts, and so long that a test ends before."""
    monkeypatch.setattr(fairness, "MAX_DELAY_SECONDS", raw_http.TIMEOUT_SECONDS)
    made = fairness.ResponseDelays()
    made.note_account(ACCOUNT)
    made.note_account("acc_other")
    return made


@pytest.mark.parametrize(
    "flood, status, party, pace",
    [
        (get("/notes/1", MEMBER), 200, ACCOUNT, REQUESTS),
        (get("/notes?limit=0", MEMBER), 400, ACCOUNT, REQUESTS),
        (post("/notes", b"{", MEMBER, KEY), 400, ACCOUNT, REFUSALS),
        (post("/replayed", b"", MEMBER), 202, ACCOUNT, REQUESTS),
        (get("/limited"), 429, STRANGER, REQUESTS),
        (get("/nowhere"), 404, STRANGER, REFUSALS),
        (get("/notes/1", "Authorization: Bearer nobody"), 401, STRANGER, REFUSALS),
        (get("/public"), 200, STRANGER, REQUESTS),
        (get("/file"), 200, STRANGER, FILES),
    ],
)
async def test_a_flood_waits_for_its_answers_and_others_do_not(
    flood: bytes, status: int, party: str, pace: fairness.Pace, delays: fairness.ResponseDelays
) -> None:
    async with (
        app_server.running(ROUTES, delays=delays, grace_seconds=0) as opened,
        raw_http.connect(opened.address) as flooding,
        raw_http.connect(opened.address) as other,
    ):
        await flooding.send(flood)
        assert (await flooding.response()).status == status
        exhaust(delays, party, pace)
        await flooding.send(flood)
        waiting = asyncio.create_task(flooding.response())
        await other.send(get("/notes/1", "Authorization: Bearer other"))
        assert (await other.response()).status == 200
        for accepted in (200, 202):
            await other.send(post(f"/accepted/{accepted}", b"", MEMBER))
            assert (await other.response()).status == accepted, "a message that is accepted is never delayed"
        await other.send(get("/probe"))
        assert (await other.response()).status == 503, "nor is a probe"
        assert not waiting.done()
        await opened.listener.stop(grace_seconds=0)
        assert (await waiting).status == 503


async def test_a_flood_of_probes_waits_too_and_nothing_else_does(delays: fairness.ResponseDelays) -> None:
    async with (
        app_server.running(ROUTES, delays=delays, grace_seconds=0) as opened,
        raw_http.connect(opened.address) as flooding,
        raw_http.connect(opened.address) as other,
    ):
        exhaust(delays, STRANGER, PROBES)
        await flooding.send(get("/probe"))
        waiting = asyncio.create_task(flooding.response())
        await other.send(get("/public"))
        assert (await other.response()).status == 200
        assert not waiting.done()
        await opened.listener.stop(grace_seconds=0)
        assert (await waiting).status == 503


@pytest.mark.parametrize("path, party", [("/count", STRANGER), ("/counted", ACCOUNT)])
@pytest.mark.parametrize("is_gone, status", [(True, None), (False, 204)])
async def test_a_request_whose_client_has_gone_while_it_waited_is_not_handled(
    path: str,
    party: str,
    is_gone: bool,  # noqa: FBT001
    status: int | None,
    delays: fairness.ResponseDelays,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    happened: list[str] = []

    async def sleep(_seconds: float) -> None:
        happened.append("waited")

    async with app_server.running(ROUTES, context=happened, delays=delays) as opened:
        exhaust(delays, party, REQUESTS)
        monkeypatch.setattr(application, "asyncio", types.SimpleNamespace(**{**vars(asyncio), "sleep": sleep}))
        headers = [(b"authorization", b"Bearer member")]
        request = local_requests.Request(target=f"{path}/handled".encode(), headers=headers)
        if is_gone:
            request.whole_body()
        await opened.application(request)
    assert happened == (["waited"] if status is None else ["waited", "handled"])
    assert [line["status"] for line in opened.lines if line["event"] == "request"] == [status]


async def test_an_account_with_too_many_requests_in_progress_is_refused_before_the_work(
    delays: fairness.ResponseDelays, monkeypatch: pytest.MonkeyPatch
) -> None:
    handled: list[str] = []
    # Time stands still: else a slow machine would be back within the pace.
    stopped = time.monotonic()
    monkeypatch.setattr(delays, "_clock", lambda: stopped)
    async with app_server.running(ROUTES, context=handled, delays=delays) as opened:
        while delays.of_account(ACCOUNT, REQUESTS) < fairness.MAX_DELAY_SECONDS:
            pass
        refused = await raw_http.exchange(opened.address, get("/counted/1", MEMBER))
        assert_refused(refused, 429, "rate_limited", "too many requests at once")
        assert handled == []
        await raw_http.exchange(opened.address, get("/counted/2", "Authorization: Bearer other"))
        assert handled == ["2"]


async def test_reading_a_message_waits_and_is_never_refused_for_its_number(
    delays: fairness.ResponseDelays, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`GET /emails/{id}` answers 200, 401 and 404."""
    async with app_server.running(ROUTES, delays=delays) as opened:
        while delays.of_account(ACCOUNT, REQUESTS) < fairness.MAX_DELAY_SECONDS:
            pass
        monkeypatch.setattr(fairness, "MAX_DELAY_SECONDS", 0.01)
        assert (await raw_http.exchange(opened.address, get("/notes/1", MEMBER))).status == 200


async def test_a_part_of_another_request_is_not_counted(delays: fairness.ResponseDelays) -> None:
    async with app_server.running(ROUTES, delays=delays) as opened:
        exhaust(delays, ACCOUNT, REQUESTS)
        api = local_api.LocalApi(
            opened.application.serve_part, authorization=b"Bearer member", client_address="127.0.0.1"
        )
        status, _ = await api.send("GET", "/notes/1", body=b"", headers={})
        assert status == 200
