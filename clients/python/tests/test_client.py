"""Both clients against a server that behaves, and one that does not."""

import asyncio
import base64
import contextlib
import json
import socket
import threading
from typing import Any

import pytest

from clients.python.tests.scripted import PATIENCE_SECONDS, Call, Seen, Serve, answer, reset
from postroad_client import ConnectionFailedError, Email, Message, PostroadError, Receipt, TimedOutError

EMAIL = Email(sender="hello@example.com", to="ada@example.net", subject="Hi", text="Hi")
RECEIPT = {"id": "em_1", "status": "queued"}
BUSY = {"error": "later", "code": "service_unavailable", "request_id": "req_1"}


async def error_of(call: Call, url: str, **options: Any) -> PostroadError:
    with pytest.raises(PostroadError) as caught:
        await call(url, "get", "em_1", **{"max_elapsed": 0, **options})
    return caught.value


async def test_a_send_is_one_post(call: Call, serve: Serve, seen: Seen) -> None:
    receipt = await call(serve(answer(202, RECEIPT)), "send", EMAIL, key="order-1042-receipt")
    assert isinstance(receipt, Receipt)
    assert receipt.id == "em_1"
    (request,) = seen
    assert request["line"] == "POST /emails HTTP/1.1"
    assert request["headers"]["Idempotency-Key"] == "order-1042-receipt"
    assert request["headers"]["Content-Type"] == "application/json"
    assert request["headers"]["Authorization"] == "Bearer pr_live_x"
    assert request["headers"]["User-Agent"] == "postroad-python/0.1.0"
    assert request["headers"]["Host"].startswith("127.0.0.1:")
    assert json.loads(request["body"]) == {
        "from": "hello@example.com", "to": "ada@example.net", "subject": "Hi", "text": "Hi",
    }  # fmt: skip


async def test_a_get_is_one_get(call: Call, serve: Serve, seen: Seen) -> None:
    message = await call(serve(answer(200, RECEIPT)), "get", "em_1")
    assert isinstance(message, Message)
    assert seen[0]["line"] == "GET /emails/em_1 HTTP/1.1"
    assert "Idempotency-Key" not in seen[0]["headers"]
    assert "Content-Length" not in seen[0]["headers"]


async def test_a_wait_is_a_get_until_every_recipient_is_final(
    call: Call, serve: Serve, seen: Seen, pauses: list[float]
) -> None:
    waiting = {**RECEIPT, "recipients": [{"status": "delivered"}, {"status": "deferred"}]}
    final = {"id": "em_1", "status": "partial", "recipients": [{"status": "delivered"}, {"status": "bounced"}]}
    message = await call(serve(answer(200, RECEIPT), answer(200, waiting), answer(200, final)), "wait", "em_1")
    assert message.status == "partial"
    assert [request["line"] for request in seen] == ["GET /emails/em_1 HTTP/1.1"] * 3
    assert pauses == [1, 1.5]


async def test_a_wait_that_is_over_has_the_last_message(call: Call, serve: Serve) -> None:
    with pytest.raises(TimedOutError, match="em_1 is not final after 0 s") as caught:
        await call(serve(answer(200, RECEIPT)), "wait", "em_1", wait_seconds=0)
    assert caught.value.last_message is not None
    assert caught.value.last_message.status == "queued"
    assert caught.value.is_retryable


async def test_a_credential_of_smtp_is_sent_as_basic(call: Call, serve: Serve, seen: Seen) -> None:
    await call(serve(answer(200, RECEIPT)), "get", "em_1", token=None, username="smtp_1", password="pä:ss")
    assert seen[0]["headers"]["Authorization"] == f"Basic {base64.b64encode('smtp_1:pä:ss'.encode()).decode()}"


async def test_a_base_url_may_have_a_path(call: Call, serve: Serve, seen: Seen) -> None:
    await call(serve(answer(200, RECEIPT)) + "/mail%20room//", "get", "em_1")
    assert seen[0]["line"] == "GET /mail%20room/emails/em_1 HTTP/1.1"


async def test_a_host_may_be_an_address_of_version_6(call: Call, serve: Serve, seen: Seen) -> None:
    await call(serve(answer(200, RECEIPT), host="::1"), "get", "em_1")
    assert seen[0]["headers"]["Host"].startswith("[::1]:")


async def test_the_key_stays_through_all_attempts(call: Call, serve: Serve, seen: Seen, pauses: list[float]) -> None:
    busy = answer(503, BUSY, Retry_After="3")
    receipt = await call(serve(busy, reset, answer(202, RECEIPT)), "send", EMAIL)
    assert receipt.id == "em_1"
    assert len({request["headers"]["Idempotency-Key"] for request in seen}) == 1
    assert len({request["body"] for request in seen}) == 1
    assert 3.25 <= pauses[0] <= 3.5
    assert 0.5 <= pauses[1] <= 1


async def test_a_connection_is_used_again(call: Call, serve: Serve, seen: Seen) -> None:
    chunked = b"HTTP/1.1 503 Busy\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nnot\r\n0\r\n\r\n"
    await call(serve(answer(503, BUSY), chunked, answer(200, RECEIPT)), "get", "em_1")
    assert [request["connection"] for request in seen] == [0, 0, 0]


async def test_a_connection_that_the_server_closes_is_not(call: Call, serve: Serve, seen: Seen) -> None:
    await call(serve(answer(503, BUSY, Connection="close"), answer(200, RECEIPT)), "get", "em_1")
    assert [request["connection"] for request in seen] == [0, 1]


async def test_a_lost_connection_is_one_attempt(call: Call, serve: Serve, seen: Seen) -> None:
    # On a new connection, and on a kept one: no library below may repeat a GET by itself.
    assert (await error_of(call, serve(reset))).code == "connection_failed"
    gone = answer(404, {"error": "no", "code": "not_found"})
    assert (await error_of(call, serve(answer(503, BUSY), reset, gone), max_elapsed=60)).code == "not_found"
    assert len(seen) == 4


async def test_nobody_at_home_is_a_failed_connection(call: Call) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    error = await error_of(call, f"http://127.0.0.1:{port}")
    assert error.message == f"connection_failed: could not connect to 127.0.0.1:{port}: connection refused"
    assert isinstance(error, ConnectionFailedError)
    assert (error.status, error.request_id, error.retry_after) == (None, None, None)


async def test_a_name_that_is_none_is_a_failed_connection(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def look_up(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    error = await error_of(call, "http://no-such-host.invalid")
    assert error.code == "connection_failed"
    assert "could not connect" in error.message


@pytest.mark.parametrize("cut", [
    b"", b"HTTP/1.1 20", b"HTTP/1.1 200 OK\r\nContent-Le", b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{",
    b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n20\r\n{"id": "em_1", "status": "sent"}\r\n',
])  # fmt: skip
async def test_half_an_answer_is_a_failed_connection(call: Call, serve: Serve, cut: bytes) -> None:
    def step(sock: socket.socket) -> None:
        sock.sendall(cut)
        sock.shutdown(socket.SHUT_WR)

    error = await error_of(call, serve(step))
    assert (error.status, error.code) == (None, "connection_failed")


async def test_what_is_not_http_is_unexpected(call: Call, serve: Serve) -> None:
    error = await error_of(call, serve(b"220 mail.example.com ESMTP " + b"x" * 500 + b"\r\n\r\n"))
    assert (error.status, error.code) == (None, "unexpected_response")
    assert len(error.message) < 400


async def test_interim_answers_are_passed_over(call: Call, serve: Serve, seen: Seen) -> None:
    interim = b"".join(b"HTTP/1.1 %d Word\r\nLink: x\r\n\r\n" % status for status in (100, 102, 103, 103))
    await call(serve(interim + answer(503, BUSY), interim + answer(200, RECEIPT)), "get", "em_1")
    assert [request["connection"] for request in seen] == [0, 0]


@pytest.mark.parametrize("size", [b"-1", b"-5"])
async def test_a_chunk_of_fewer_than_no_bytes_is_unexpected(call: Call, serve: Serve, size: bytes) -> None:
    def step(sock: socket.socket) -> None:
        sock.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + size + b"\r\n")
        while True:  # until the client has gone
            sock.sendall(b" " * 65536)

    error = await error_of(call, serve(step))
    assert (error.status, error.code) == (None, "unexpected_response")


async def test_an_answer_without_a_length_ends_with_its_connection(call: Call, serve: Serve) -> None:
    def step(sock: socket.socket) -> None:
        sock.sendall(b"HTTP/1.1 200 OK\r\n\r\n" + json.dumps(RECEIPT).encode())
        sock.shutdown(socket.SHUT_WR)

    assert (await call(serve(step), "get", "em_1")).id == "em_1"


async def test_redirects_are_not_followed(call: Call, serve: Serve, seen: Seen) -> None:
    error = await error_of(call, serve(answer(307, b"", Location="http://elsewhere.example/")))
    assert (error.status, error.code) == (307, "unexpected_response")
    assert "http://elsewhere.example/" in error.message
    assert len(seen) == 1


async def test_a_packed_answer_is_not_unpacked(call: Call, serve: Serve, seen: Seen) -> None:
    error = await error_of(call, serve(answer(200, b"\x1f\x8b\x08\0\0\0\0\0", Content_Encoding="gzip")))
    assert (error.status, error.code) == (200, "unexpected_response")
    assert seen[0]["headers"]["Accept-Encoding"] == "identity"


@pytest.mark.parametrize("head", [b"Content-Length: 99999999", b"Transfer-Encoding: chunked", b"Connection: close"])
async def test_an_endless_answer_is_read_to_a_bound(call: Call, serve: Serve, head: bytes) -> None:
    def step(sock: socket.socket) -> None:
        sock.sendall(b"HTTP/1.1 200 OK\r\n" + head + b"\r\n\r\n")
        while True:  # until the client has gone
            sock.sendall(b"10000\r\n" + b" " * 65536 + b"\r\n")

    error = await error_of(call, serve(step))
    assert (error.status, error.code) == (200, "unexpected_response")
    assert "more than" in error.message


@pytest.mark.parametrize("start", [b"", b"HTTP/1.1 200 OK\r\nX: ", b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n"])
async def test_an_answer_that_trickles_gets_no_longer(call: Call, serve: Serve, start: bytes) -> None:
    def step(sock: socket.socket) -> None:
        sock.sendall(start)
        sock.settimeout(0.01)
        while True:  # until the client has gone
            sock.sendall(b"x" if start else b"")
            try:
                if not sock.recv(1):
                    return
            except TimeoutError:
                continue

    error = await error_of(call, serve(step), timeout=0.1)
    assert (error.status, error.code) == (None, "timed_out")


async def test_an_early_refusal_of_a_large_body_is_read(call: Call, serve: Serve) -> None:
    has_gone = threading.Event()

    def step(sock: socket.socket) -> None:
        sock.sendall(answer(413, {"error": "too large", "code": "payload_too_large"}, Connection="close"))
        sock.shutdown(socket.SHUT_WR)
        with contextlib.suppress(ConnectionError):
            while sock.recv(65536):
                pass
        has_gone.set()

    large = Email(sender="a@example.com", to="b@example.com", text="x" * 5_000_000)
    with pytest.raises(PostroadError) as caught:
        await call(serve(step), "send", large)
    assert caught.value.code == "payload_too_large"
    # asyncio closes a connection only when what it holds was taken; until then, the loop has to go on.
    assert await asyncio.to_thread(has_gone.wait, PATIENCE_SECONDS)
