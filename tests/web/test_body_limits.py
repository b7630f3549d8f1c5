"""Large bodies have places: few are worked on at once, the small ones pass by, and nobody waits for ever."""

import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncIterator
from typing import Any

import httpx
import msgspec
import pytest

from postroad import errors
from postroad.model.people import callers
from postroad.network.http import http_messages
from postroad.web import request_reader, routing
from tests import passing_time, raw_http
from tests.api import app_server

LARGE = {"text": "x" * (1024 * 1024 + 1)}
SMALL = {"text": "x"}


class Note(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    text: str


class Handling:
    """A handler that holds large notes until it may go on."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.may_go_on = asyncio.Event()

    async def take(self, _context: object, request: routing.Request) -> routing.Response:
        if len(request.body.text) > 1024 * 1024:
            self.begun.set()
            await self.may_go_on.wait()
        if request.idempotency_key == "bad":
            raise errors.Forbidden("not this one")
        return routing.Response(204)

    def routes(self) -> tuple[routing.Route[Any], ...]:
        return (
            routing.Route(
                method="POST",
                path="/notes",
                handler=self.take,
                summary="",
                tag="",
                permission=callers.Permission.SEND,
                body=Note,
                body_limit=4 * 1024 * 1024,
                idempotent=True,
                responses={204: None},
            ),
        )


async def post(opened: app_server.AppServer, note: dict[str, str], *, key: str = "good") -> httpx.Response:
    return await opened.client.post("/notes", json=note, headers={"Idempotency-Key": key})


def places(monkeypatch: pytest.MonkeyPatch, *, arriving: int, handled: int) -> None:
    """So many places, and nobody waits for one that is taken."""
    monkeypatch.setattr(request_reader, "MAX_RECEIVING", arriving)
    monkeypatch.setattr(request_reader, "MIN_RECEIVING", 1)
    monkeypatch.setattr(request_reader, "MAX_PROCESSING", handled)
    monkeypatch.setattr(request_reader, "SLOT_TIMEOUT_SECONDS", 0)


@pytest.mark.parametrize("arriving, handled", [(2, 1), (1, 1)])
async def test_one_too_many_is_refused_temporarily_and_small_ones_pass(
    monkeypatch: pytest.MonkeyPatch, arriving: int, handled: int
) -> None:
    places(monkeypatch, arriving=arriving, handled=handled)
    handling = Handling()
    async with app_server.running(handling.routes()) as opened:
        first = asyncio.create_task(post(opened, LARGE))
        await handling.begun.wait()
        refused = await post(opened, LARGE)
        assert (refused.status_code, refused.json()["code"]) == (503, "temporary_failure")
        assert refused.headers["retry-after"] == "1"
        assert (await post(opened, SMALL)).status_code == 204
        handling.may_go_on.set()
        assert (await first).status_code == 204
        assert (await post(opened, LARGE)).status_code == 204


async def test_a_small_body_that_did_not_say_its_length_is_not_held_up_by_large_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    places(monkeypatch, arriving=3, handled=1)
    handling = Handling()

    async def pieces() -> AsyncIterator[bytes]:
        yield msgspec.json.encode(SMALL)

    async with app_server.running(handling.routes()) as opened:
        first = asyncio.create_task(post(opened, LARGE))
        await handling.begun.wait()
        for _ in range(3):
            headers = {"Idempotency-Key": "good", "Content-Type": "application/json"}
            answer = await opened.client.post("/notes", content=pieces(), headers=headers)
            assert answer.status_code == 204, answer.text
        handling.may_go_on.set()
        assert (await first).status_code == 204


async def test_a_refused_request_gives_its_places_back(monkeypatch: pytest.MonkeyPatch) -> None:
    places(monkeypatch, arriving=1, handled=1)
    handling = Handling()
    handling.may_go_on.set()
    async with app_server.running(handling.routes()) as opened:
        assert (await post(opened, LARGE, key="bad")).status_code == 403
        assert (await post(opened, {**LARGE, "wrong": ""})).status_code == 400
        assert (await post(opened, LARGE)).status_code == 204


class _Patience:
    """Notes how long a timeout is asked to wait, and waits no longer."""

    def __init__(self) -> None:
        self.seconds: list[float | None] = []

    def __call__(self, seconds: float | None) -> asyncio.Timeout:
        self.seconds.append(seconds)
        return asyncio.Timeout(0)


async def test_who_finds_no_place_waits_ten_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    bodies = request_reader.LargeBodySlots()
    async with bodies.processing("a"), bodies.processing("b"):
        patience = _Patience()
        monkeypatch.setattr(asyncio, "timeout", patience)
        with pytest.raises(errors.TemporaryFailure) as refused:
            async with bodies.processing("c"):
                raise AssertionError("there are two places")
        monkeypatch.undo()
    assert patience.seconds == [10.0]
    assert refused.value.retry_after == 1


async def test_there_are_eight_places_to_receive_and_two_to_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_reader, "SLOT_TIMEOUT_SECONDS", 0)
    bodies = request_reader.LargeBodySlots()
    for places_of_kind, count in ((bodies.receiving, 8), (bodies.processing, 2)):
        async with contextlib.AsyncExitStack() as taken:
            for party in range(count):
                await taken.enter_async_context(places_of_kind(str(party)))
            with pytest.raises(errors.TemporaryFailure):
                await taken.enter_async_context(places_of_kind("late"))


async def test_who_finds_no_place_waits_for_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_reader, "MAX_PROCESSING", 1)
    bodies = request_reader.LargeBodySlots()
    entered: list[str] = []

    async def enter(name: str) -> None:
        async with bodies.processing("waiting"):
            entered.append(name)

    async with bodies.processing("working"):
        waiting = [asyncio.create_task(enter(name)) for name in ("first", "second")]
        await asyncio.sleep(0)
        assert entered == []
    await asyncio.gather(*waiting)
    assert entered == ["first", "second"]


@pytest.mark.parametrize("frontends, most", [(1, 4), (2, 2), (3, 2), (64, 2)])
async def test_of_the_slots_to_receive_one_is_left_for_somebody_else(
    monkeypatch: pytest.MonkeyPatch, frontends: int, most: int
) -> None:
    monkeypatch.setattr(request_reader, "SLOT_TIMEOUT_SECONDS", 0)
    bodies = request_reader.LargeBodySlots(frontends=frontends)
    async with contextlib.AsyncExitStack() as taken:
        for _ in range(most):
            await taken.enter_async_context(bodies.receiving("greedy"))
        with pytest.raises(errors.TemporaryFailure):
            await taken.enter_async_context(bodies.receiving("greedy"))
        await taken.enter_async_context(bodies.receiving("modest"))


@pytest.mark.parametrize("frontends, most", [(1, 4), (2, 2), (3, 1), (64, 1)])
async def test_frontends_share_the_slots_and_each_has_one(
    monkeypatch: pytest.MonkeyPatch, frontends: int, most: int
) -> None:
    places(monkeypatch, arriving=12, handled=4)
    bodies = request_reader.LargeBodySlots(frontends=frontends)
    async with contextlib.AsyncExitStack() as taken:
        for party in range(most):
            await taken.enter_async_context(bodies.processing(str(party)))
        with pytest.raises(errors.TemporaryFailure):
            await taken.enter_async_context(bodies.processing("late"))


async def test_a_body_that_stalls_may_be_sent_again() -> None:
    limits = http_messages.Limits(body_seconds=30)
    handling = Handling()
    fields = ("Authorization: Bearer member", "Idempotency-Key: good")
    async with app_server.running(handling.routes(), limits=limits) as opened:
        async with raw_http.connect(opened.address) as connection:
            await connection.send(raw_http.post("/notes", b'{"text', *fields, length=20))
            await passing_time.until_one(opened.listener, lambda connection: connection._reader.stage == "body")
            passing_time.pass_seconds(opened.listener, 31)
            response = await connection.response()
            assert await connection.rest() == b""
        assert (response.status, response.headers["retry-after"], response.headers["connection"]) == (503, "1", "close")
        assert response.json() == {
            "error": "the body of the request did not arrive in time; retry with the same key",
            "code": "temporary_failure",
            "request_id": response.headers["x-request-id"],
        }
        assert (await post(opened, SMALL)).status_code == 204


STALLED = 16


@contextlib.asynccontextmanager
async def stalled_bodies(opened: app_server.AppServer) -> AsyncIterator[list[raw_http.Connection]]:
    """So many large bodies of one account that begin and do not go on."""
    fields = ("Authorization: Bearer member", "Idempotency-Key: good")
    async with contextlib.AsyncExitStack() as stack:
        connections = [await stack.enter_async_context(raw_http.connect(opened.address)) for _ in range(STALLED)]
        for connection in connections:
            await connection.send(raw_http.post("/notes", b'{"text', *fields, length=2 * 1024 * 1024))
        yield connections


async def test_bodies_that_stall_keep_nobody_else_from_sending_large_mail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_reader, "SLOT_TIMEOUT_SECONDS", 0)
    handling = Handling()
    handling.may_go_on.set()
    async with app_server.running(handling.routes()) as opened, stalled_bodies(opened) as connections:
        refused = [await connection.response() for connection in connections[4:]]
        assert {response.status for response in refused} == {503}
        headers = {"Idempotency-Key": "good", "Authorization": "Bearer other"}
        for _ in range(3):
            assert (await opened.client.post("/notes", json=LARGE, headers=headers)).status_code == 204
        assert (await post(opened, LARGE)).status_code == 503  # its own slots are all stalled


async def test_a_large_body_that_stalls_loses_its_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_reader, "MIN_OCTETS_SECONDS", 0.05)
    monkeypatch.setattr(request_reader, "SLOT_TIMEOUT_SECONDS", 300)
    handling = Handling()
    handling.may_go_on.set()
    async with app_server.running(handling.routes()) as opened, stalled_bodies(opened) as connections:
        for connection in connections:  # those without a slot get one, and stall as well
            response = await connection.response()
            assert await connection.rest() == b""
            fields = response.headers
            assert (response.status, fields["retry-after"], fields["connection"]) == (503, "1", "close")
            assert response.json() == {
                "error": "the body of the request did not arrive in time; retry with the same key",
                "code": "temporary_failure",
                "request_id": fields["x-request-id"],
            }
        monkeypatch.setattr(request_reader, "MIN_OCTETS_SECONDS", 300)
        assert (await post(opened, LARGE)).status_code == 204


async def test_a_body_must_go_on_at_the_minimum_speed(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = asyncio.get_running_loop()
    now = clock.time()
    monkeypatch.setattr(clock, "time", lambda: now)
    parts = [(9.0, 160 * 1024 - 1), (0.9, 1), (9.9, 160 * 1024), (9.9, 1024), (0.2, 0)]

    async def receive() -> tuple[bytes, bool]:
        nonlocal now
        seconds, octets = parts.pop(0)
        now += seconds
        for _ in range(3):  # until timers have run
            await asyncio.sleep(0)
        return bytes(octets), True

    at_speed = request_reader.at_minimum_speed(receive)
    for _ in range(4):
        await at_speed()
    with pytest.raises(errors.TemporaryFailure):
        await at_speed()


async def test_a_stranger_is_known_by_its_network() -> None:
    """Who is not logged in shares with its network, not with the accounts."""
    handling = Handling()
    handling.may_go_on.set()
    (route,) = handling.routes()
    public = dataclasses.replace(route, permission=None)
    parties: list[str] = []

    class Slots(request_reader.LargeBodySlots):
        def receiving(self, party: str) -> contextlib.AbstractAsyncContextManager[None]:
            parties.append(party)
            return super().receiving(party)

    async with app_server.running([public], large_body_slots=Slots()) as opened:
        assert (await post(opened, LARGE)).status_code == 204
    assert parties == ["127.0.0.1"]
