"""Answers in parts: of any length, cut when they break, and not made for a caller that is gone."""

import asyncio
import dataclasses
from typing import Any

import httpx
import pytest

from postroad import errors
from postroad.web import routing
from tests import raw_http
from tests.api import app_server
from tests.raw_http import get

PARTS = [b"one,", b"two,", b"three"]


def route(parts: Any) -> routing.Route[Any]:  # noqa: ANN401 - an async generator function of the test
    async def handler(context: object, _request: routing.Request) -> routing.Response:
        return routing.Response(200, parts(context), content_type="text/csv")

    return routing.Route(
        method="GET",
        path="/parts",
        handler=handler,
        summary="",
        tag="",
        permission=None,
        responses={200: bytes},
        content_type="text/csv",
    )


async def three(_context: object) -> routing.Parts:
    for part in PARTS:
        yield part


async def nothing(_context: object) -> routing.Parts:
    for part in PARTS[:0]:
        yield part


async def unavailable(context: object) -> routing.Parts:
    if context is not None:
        yield PARTS[0]
    raise errors.ServiceUnavailable("the store is away", retry_after=1)


async def endless(context: Any) -> routing.Parts:  # noqa: ANN401 - the test's own events
    try:
        while True:
            yield b"x" * 65_536
            await asyncio.sleep(0)
    finally:
        context["closed"].set()


async def test_parts_arrive_as_one_answer_and_the_connection_goes_on() -> None:
    async with app_server.running([route(three)]) as opened:
        for _ in range(2):
            response = await opened.client.get("/parts")
            assert (response.status_code, response.content) == (200, b"".join(PARTS))
            assert response.headers["content-type"] == "text/csv"
            assert response.headers["x-request-id"].startswith("req_")
            assert response.headers["transfer-encoding"] == "chunked"
            assert "content-length" not in response.headers
    assert [line["status"] for line in opened.lines] == [200, 200]


async def test_an_answer_without_parts_is_empty() -> None:
    async with app_server.running([route(nothing)]) as opened:
        assert (await opened.client.get("/parts")).content == b""


async def test_head_has_the_fields_and_none_of_the_parts() -> None:
    context: dict[str, asyncio.Event] = {"closed": asyncio.Event()}
    async with (
        app_server.running([route(endless)], context=context) as opened,
        raw_http.connect(opened.address) as connection,
    ):
        for _ in range(2):
            await connection.send(get("/parts", method="HEAD"))
            response = await connection.response(has_body=False)
            assert (response.status, response.headers["content-type"]) == (200, "text/csv")
        assert context["closed"].is_set()


async def test_what_goes_wrong_before_the_first_part_is_answered() -> None:
    async with app_server.running([route(unavailable)]) as opened:
        response = await opened.client.get("/parts")
    assert (response.status_code, response.json()["code"]) == (503, "service_unavailable")


async def test_an_answer_that_breaks_off_does_not_look_whole() -> None:
    async with app_server.running([route(unavailable)], context="later") as opened:
        with pytest.raises(httpx.RemoteProtocolError):
            await opened.client.get("/parts")
    (line,) = [line for line in opened.lines if line["event"] == "response_aborted"]
    assert (line["route"], line["request_id"][:4]) == ("/parts", "req_")


async def test_nothing_is_made_for_a_caller_that_is_gone() -> None:
    context: dict[str, asyncio.Event] = {"closed": asyncio.Event()}
    async with app_server.running([route(endless)], context=context) as opened:
        async with raw_http.connect(opened.address) as connection:
            await connection.send(get("/parts"))
            await connection.response(has_body=False)
        async with asyncio.timeout(raw_http.TIMEOUT_SECONDS):
            await context["closed"].wait()


async def test_parts_whose_length_is_known_say_it() -> None:
    async def handler(context: object, _request: routing.Request) -> routing.Response:
        return routing.Response(200, three(context), content_type="text/csv", length=len(b"".join(PARTS)))

    async with app_server.running([dataclasses.replace(route(three), handler=handler)]) as opened:
        for _ in range(2):
            response = await opened.client.get("/parts")
            assert response.content == b"".join(PARTS)
            assert response.headers["content-length"] == str(len(response.content))
            assert "transfer-encoding" not in response.headers
        assert (await opened.client.head("/parts")).headers["content-length"] == str(len(b"".join(PARTS)))


async def test_fewer_octets_than_were_promised_do_not_look_whole() -> None:
    async def handler(context: object, _request: routing.Request) -> routing.Response:
        return routing.Response(200, three(context), content_type="text/csv", length=1000)

    problems: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, problem: problems.append(problem))
    async with app_server.running([dataclasses.replace(route(three), handler=handler)]) as opened:
        with pytest.raises(httpx.RemoteProtocolError):
            await opened.client.get("/parts")
    assert "Content-Length" in str(problems[0]["exception"])
