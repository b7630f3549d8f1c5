"""Security cases B, the answers: too long, broken, smuggled, or meant for somebody's screen.

Whatever an endpoint answers, the attempt ends in a status or in `invalid_response`, two kilobytes of text are kept at
the most, and the next event is sent as always. `N` are neighbours of the written cases.
"""

import gzip

import pytest

from postroad.model.units import times
from postroad.services.webhooks import endpoints
from tests.api.webhook_calls import DELIVERIES
from tests.contexts import SECOND
from tests.security.webhook_scenario import HEAD, RETRY_SECONDS, RepeatingResponse, WebhookScenario, error, status
from tests.webhook_server import OK, ReceivedRequest, ok

KEPT_BYTES = 2048
# What sockets and TLS hold on both sides at the most; a reader that did not stop would take all there is.
BUFFERED_BYTES = 32 * 1024 * 1024


# Size.


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(RepeatingResponse(HEAD + b"\r\n", b"x" * 65_536), id="B5 no end"),
        pytest.param(
            RepeatingResponse(HEAD + b"Content-Length: 1000000000\r\n\r\n", b"x" * 65_536, times=15_259), id="B5 1 GB"
        ),
        pytest.param(RepeatingResponse(HEAD + b"Content-Length: 1000000000000\r\n\r\n", b"x" * 65_536), id="B5 10^12"),
        pytest.param(
            RepeatingResponse(HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"10000\r\n" + b"x" * 65_536 + b"\r\n"),
            id="B5 chunks without end",
        ),
    ],
)
async def test_of_a_body_without_end_two_kilobytes_are_kept_and_the_connection_is_closed(
    scenario: WebhookScenario, answer: RepeatingResponse
) -> None:
    scenario.public.answer = answer
    await scenario.subscribe()
    async with scenario.harness.delivering():
        for delivery in (await scenario.send_event(), await scenario.ping()):
            assert (delivery["status"], status(delivery)) == ("succeeded", 200)
            assert delivery["attempts"][0]["response_body"] == "x" * KEPT_BYTES
            await scenario.public.left_alone()
        assert answer.sent < BUFFERED_BYTES
        await scenario.goes_on()


async def test_b5_a_length_that_never_comes_is_no_response(scenario: WebhookScenario) -> None:
    scenario.public.answer = HEAD + b"Content-Length: 1000000000000\r\nConnection: close\r\n\r\nshort"
    await scenario.subscribe()
    async with scenario.harness.delivering():
        assert (error(await scenario.send_event()) or "").startswith("invalid_response: ")
        await scenario.goes_on()


async def test_n8_a_compressed_bomb_is_not_unpacked(scenario: WebhookScenario) -> None:
    bomb = gzip.compress(b"\0" * 1_500_000, mtime=0)
    assert len(bomb) < KEPT_BYTES
    scenario.public.answer = ok(200, bomb, "Content-Encoding: gzip", "Content-Type: text/plain")
    await scenario.subscribe()
    async with scenario.harness.delivering():
        kept = (await scenario.send_event())["attempts"][0]["response_body"]
        assert kept.startswith("\x1f\ufffd\x08")
        assert len(kept.encode()) <= KEPT_BYTES
        await scenario.goes_on()
    assert not any("accept-encoding" in request.headers for request in scenario.public.requests)


# Broken responses.


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(HEAD + b"X: " + b"y" * 1_000_000 + b"\r\n\r\n", id="B7 headers of 1 MB"),
        pytest.param(
            HEAD + b"".join(b"X-%d: y\r\n" % number for number in range(10_000)) + b"\r\n", id="B7 10,000 headers"
        ),
        pytest.param(b"HTTP/1.1 OK 200\r\n\r\n", id="B7 status line"),
        pytest.param(b"HTTP/1.1 2000 OK\r\n\r\n", id="B7 a status of four digits"),
        pytest.param(b"<html>no head at all</html>\r\n\r\n", id="B7 HTTP/0.9"),
        pytest.param(b"\x16\x03\x01" + bytes(100), id="N9 TLS within TLS"),
        pytest.param(HEAD + b"X: a\x00b\r\nContent-Length: 0\r\n\r\n", id="N9 NUL in a header"),
        pytest.param(HEAD + b"X: a\rInjected: b\r\nContent-Length: 0\r\n\r\n", id="N9 a bare CR in a header"),
        pytest.param(HEAD + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\nokk", id="N9 two lengths"),
        pytest.param(HEAD + b"Content-Length: -1\r\n\r\n", id="N9 a negative length"),
        pytest.param(
            HEAD + b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\nx", id="N9 a chunk of 2^72 bytes"
        ),
        pytest.param(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n", id="N9 101"),
    ],
)
async def test_what_is_no_response_fails_the_attempt_and_the_worker_lives(
    scenario: WebhookScenario, answer: bytes
) -> None:
    scenario.public.answer = answer
    await scenario.subscribe()
    async with scenario.harness.delivering():
        for delivery in (await scenario.send_event(), await scenario.ping()):
            assert (status(delivery), delivery["attempts"][0]["response_body"]) == (None, None)
            assert (error(delivery) or "").startswith("invalid_response: ")
        await scenario.goes_on()


async def test_n10_a_second_response_is_not_taken_for_the_answer_to_the_next_request(scenario: WebhookScenario) -> None:
    scenario.public.answer = OK + ok(200, b"smuggled")
    await scenario.subscribe()
    async with scenario.harness.delivering():
        assert (await scenario.send_event())["attempts"][0]["response_body"] == "ok"
        scenario.public.answer = ok(500, b"the real one")
        delivery = await scenario.send_event()
        assert (delivery["attempts"][0]["status_code"], delivery["attempts"][0]["response_body"]) == (
            500,
            "the real one",
        )
    assert [request.connection for request in scenario.public.requests] == [1, 2]


async def test_n11_a_request_is_never_sent_twice_within_an_attempt(scenario: WebhookScenario) -> None:
    """Also when a kept connection ends under it: it may have been read, and there are seven attempts, not more."""

    async def answer(request: ReceivedRequest) -> bytes:
        # The second request on a connection meets its end.
        return OK if [one.connection for one in scenario.public.requests].count(request.connection) == 1 else b""

    scenario.public.answer = answer
    await scenario.subscribe()
    async with scenario.harness.delivering():
        first, second = await scenario.send_event(), await scenario.send_event()
        assert [(one["status"], one["attempt_count"]) for one in (first, second)] == [("succeeded", 1), ("pending", 1)]
    assert [request.connection for request in scenario.public.requests] == [1, 1]


# What is kept, and what follows.


@pytest.mark.parametrize("database_url", ["sqlite", "postgres"], indirect=True)
@pytest.mark.parametrize(
    "body, kept",
    [
        pytest.param(b"<script>alert(1)</script>", "<script>alert(1)</script>", id="B11 script"),
        pytest.param(b"\x1b[31mred\x1b[0m\x07", "\x1b[31mred\x1b[0m\x07", id="B11 ANSI"),
        pytest.param(b"a\x00b", "a\ufffdb", id="B11 NUL"),
        pytest.param(b"\xff\xfe\xed\xa0\x80", "\ufffd" * 5, id="B11 invalid UTF-8"),
        pytest.param(b"x" + "☃".encode() * 1000, "x" + "☃" * 682, id="B11 cut within a character"),
        pytest.param(b"\xff" * 4096, "\ufffd" * 682, id="B11 what grows when it is replaced"),
    ],
)
async def test_a_body_is_kept_as_text_and_shown_as_json(scenario: WebhookScenario, body: bytes, kept: str) -> None:
    scenario.public.answer = ok(200, body, "Content-Type: text/html")
    await scenario.subscribe()
    async with scenario.harness.delivering():
        delivery = await scenario.send_event()
    assert delivery["attempts"][0]["response_body"] == kept
    assert len(kept.encode()) <= KEPT_BYTES
    shown = await scenario.call("GET", DELIVERIES)
    assert shown.headers["content-type"] == "application/json"
    assert shown.headers["x-content-type-options"] == "nosniff"
    assert not set(shown.content) & set(range(0x20))


@pytest.mark.parametrize(
    "code, state",
    [(204, "succeeded"), (299, "succeeded"), (300, "pending"), (304, "pending"), (410, "pending"), (429, "pending")],
    ids=lambda value: f"B13 {value}",
)
async def test_any_2xx_is_success_and_nothing_stretches_the_schedule(
    scenario: WebhookScenario, code: int, state: str
) -> None:
    scenario.public.answer = ok(code, b"", "Retry-After: 999999")
    await scenario.subscribe()
    async with scenario.harness.delivering():
        delivery = await scenario.send_event()
        assert (delivery["status"], status(delivery)) == (state, code)
        due = times.to_wire(scenario.harness.clock.now + RETRY_SECONDS * SECOND)
        assert delivery["next_attempt_at"] == (None if state == "succeeded" else due)
        assert (await scenario.ping())["status"] == ("succeeded" if state == "succeeded" else "failed")
    assert (await endpoints.find(scenario.harness.ctx, scenario.mine.account_id)) is not None  # 410 removes nothing
