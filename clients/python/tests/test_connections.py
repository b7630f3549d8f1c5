"""What is kept between calls, and shared between threads and tasks; TLS; what shows no secret."""

import asyncio
import datetime as dt
import ipaddress
import os
import socket
import ssl
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from clients.python.tests.scripted import PATIENCE_SECONDS, Call, Seen, Serve, answer
from postroad_client import AsyncClient, Client, Email, PostroadError, connections

MESSAGE = {"id": "em_1", "status": "delivered"}


def contexts(folder: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """For a server at 127.0.0.1, and for a client that trusts it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "test")])
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    file = folder / "server.pem"
    file.write_bytes(private + certificate.public_bytes(pem))
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server.load_cert_chain(file)
    return server, ssl.create_default_context(cafile=file)


def test_the_next_call_uses_the_same_connection(serve: Serve, seen: Seen) -> None:
    with Client(serve(*[answer(200, MESSAGE)] * 3), token="t") as client:
        assert {client.get("em_1").status for _ in range(3)} == {"delivered"}
    assert [request["connection"] for request in seen] == [0, 0, 0]


def test_a_connection_that_was_closed_meanwhile_costs_no_attempt(serve: Serve, seen: Seen) -> None:
    closed = threading.Event()

    def step(sock: socket.socket) -> None:
        sock.sendall(answer(200, MESSAGE))
        sock.close()
        closed.set()

    with Client(serve(step, answer(200, MESSAGE)), token="t", max_elapsed=0) as client:
        client.get("em_1")
        assert closed.wait(PATIENCE_SECONDS)
        client.get("em_1")
    assert [request["connection"] for request in seen] == [0, 1]


def test_an_old_connection_is_not_used(serve: Serve, seen: Seen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "IDLE_SECONDS", -1.0)
    with Client(serve(*[answer(200, MESSAGE)] * 2), token="t") as client:
        client.get("em_1")
        client.get("em_1")
    assert [request["connection"] for request in seen] == [0, 1]


def test_another_process_has_connections_of_its_own(serve: Serve, seen: Seen, monkeypatch: pytest.MonkeyPatch) -> None:
    with Client(serve(*[answer(200, MESSAGE)] * 2), token="t") as client:
        client.get("em_1")
        monkeypatch.setattr(os, "getpid", lambda: -1)
        client.get("em_1")
    assert [request["connection"] for request in seen] == [0, 1]


def test_a_connection_that_has_changed_its_protocol_is_not_used_again(serve: Serve, seen: Seen) -> None:
    switched = b"HTTP/1.1 101 Switching Protocols\r\n\r\n"
    with Client(serve(switched, answer(200, MESSAGE)), token="t", max_elapsed=0) as client:
        with pytest.raises(PostroadError, match="101"):
            client.get("em_1")
        assert client.get("em_1").id == "em_1"
    assert [request["connection"] for request in seen] == [0, 1]


def test_a_refusal_is_read_although_the_rest_of_the_body_was_not_taken(serve: Serve, seen: Seen) -> None:
    def step(sock: socket.socket) -> None:
        sock.sendall(answer(413, {"error": "too large", "code": "payload_too_large"}))
        sock.close()  # with much unread, that is a reset

    large = Email(sender="a@example.com", to="b@example.com", text="x" * 20_000_000)
    with Client(serve(step, answer(200, MESSAGE)), token="t", max_elapsed=0) as client:
        with pytest.raises(PostroadError, match="payload_too_large"):
            client.send(large)
        assert client.get("em_1").id == "em_1"
    assert [request["connection"] for request in seen] == [0, 1]


def test_threads_may_share_a_client(serve: Serve, seen: Seen) -> None:
    together = threading.Barrier(12, timeout=PATIENCE_SECONDS)

    def step(sock: socket.socket) -> None:
        together.wait()
        sock.sendall(answer(200, MESSAGE))

    with Client(serve(*[step] * 12, *[answer(200, MESSAGE)] * 20), token="t") as client:
        with ThreadPoolExecutor(12) as threads:
            assert len(list(threads.map(client.get, ["em_1"] * 12))) == 12
        assert len(client._pool._idle) == connections.MAX_IDLE
        with ThreadPoolExecutor(4) as threads:
            assert len(list(threads.map(client.get, ["em_1"] * 20))) == 20
    assert len(seen) == 32
    assert client._pool._idle == []


async def test_tasks_may_share_a_client(serve: Serve, seen: Seen) -> None:
    async with AsyncClient(serve(*[answer(200, MESSAGE)] * 10), token="t") as client:
        messages = await asyncio.gather(*(client.get("em_1") for _ in range(10)))
    assert {message.id for message in messages} == {"em_1"}
    assert len(seen) == 10


async def test_a_closed_client_says_so() -> None:
    client = Client("http://127.0.0.1:9", token="t")
    client.close()
    with pytest.raises(RuntimeError, match="closed"):
        client.get("em_1")
    async_client = AsyncClient("http://127.0.0.1:9", token="t")
    await async_client.aclose()
    with pytest.raises(RuntimeError, match="closed"):
        await async_client.get("em_1")


def test_printing_a_client_shows_no_secret() -> None:
    for kind in (Client, AsyncClient):
        client = kind("https://mail.example.com:8443/x/", username="smtp_1", password="secret")
        assert repr(client) == f"{kind.__name__}('https://mail.example.com:8443/x')"


async def test_certificates_are_verified(call: Call, serve: Serve, tmp_path: Path) -> None:
    server, client = contexts(tmp_path)
    url = serve(answer(200, MESSAGE), answer(200, MESSAGE), context=server)
    assert (await call(url, "get", "em_1", ssl_context=client)).id == "em_1"
    with pytest.raises(PostroadError, match="certificate") as caught:
        await call(url, "get", "em_1", max_elapsed=0)
    assert caught.value.code == "connection_failed"


async def test_a_server_that_does_not_shake_hands_is_not_waited_for(call: Call) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"https://127.0.0.1:{listener.getsockname()[1]}"
        with pytest.raises(PostroadError) as caught:
            await call(url, "get", "em_1", max_elapsed=0, timeout=0.1)
    assert caught.value.code == "timed_out"
