"""What endpoints answer: the good, the endless, the slow, the broken, and certificates that are not theirs."""

import asyncio
import datetime as dt
import ssl
import time
import warnings
from collections.abc import AsyncIterator, Callable

import pytest
import trustme

from postroad.network.http import guarded_client as webhook_client
from tests import dns_server, webhook_server
from tests.services.webhook_clients import NAME, PUBLIC, running_client

HEADERS = (("Content-Type", "application/json"),)
HEAD = b"HTTP/1.1 200 OK\r\n"
# What the endpoint says, and who says it.
Saying = Callable[[webhook_server.ReceivedRequest], AsyncIterator[bytes]]


async def response_to(answer: webhook_server.Answer) -> webhook_client.WebhookResponse:
    """What comes of an answer; and the guard goes on."""
    async with webhook_server.running(answer=answer) as endpoint, running_client(endpoint=endpoint) as guard:
        found = await guard.post(endpoint.literal_url, b"{}", HEADERS)
        endpoint.answer = webhook_server.OK
        assert (await guard.post(endpoint.literal_url, b"{}", HEADERS)).succeeded
        return found


def saying(first: bytes, again: bytes, *, pause: float = 0) -> Saying:
    """Something, and then the same for ever."""

    async def say(_: webhook_server.ReceivedRequest) -> AsyncIterator[bytes]:
        yield first
        while True:
            yield again
            await asyncio.sleep(pause)

    return say


@pytest.mark.parametrize(
    "status, succeeds",
    [
        *((status, True) for status in (200, 201, 202, 204, 299)),
        *((status, False) for status in (300, 304, 400, 410, 429, 500, 503, 999)),
    ],
)
async def test_any_2xx_is_success_and_nothing_else(status: int, *, succeeds: bool) -> None:
    answer = await response_to(webhook_server.ok(status, b"", "Retry-After: 999999"))
    assert (answer.status_code, answer.succeeded, answer.body) == (status, succeeds, "")
    assert (answer.error is None) == (status not in {300, 304})


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_not_followed(status: int) -> None:
    async with (
        webhook_server.running() as elsewhere,
        webhook_server.running(tls=False) as plain,
    ):
        for target in (elsewhere.literal_url, plain.literal_url, "//127.0.0.1/", "/"):
            answer = await response_to(webhook_server.ok(status, b"moved", f"Location: {target}"))
            assert (answer.status_code, answer.body, answer.succeeded) == (status, "moved", False)
            assert answer.error is not None
            assert answer.error.startswith(f"redirect_not_followed: the endpoint responded with {status}")
        assert (elsewhere.connections, plain.connections) == (0, 0)


@pytest.mark.parametrize(
    "answer",
    [
        saying(HEAD + b"\r\n", b"x" * 65_536),
        saying(HEAD + b"Content-Length: 1000000000000\r\n\r\n", b"x" * 65_536),
        saying(HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"10000\r\n" + b"x" * 65_536 + b"\r\n"),
        webhook_server.ok(200, b"x" * 2049),
    ],
)
async def test_of_an_endless_body_the_first_2_kilobytes_are_read(answer: webhook_server.Answer) -> None:
    async with webhook_server.running(answer=answer) as endpoint, running_client(endpoint=endpoint) as guard:
        found = await guard.post(endpoint.literal_url, b"{}", HEADERS)
        assert (found.status_code, found.body, found.succeeded) == (200, "x" * 2048, True)
        await endpoint.left_alone()


@pytest.mark.parametrize(
    "body, text",
    [
        (b"<script>alert(1)</script>", "<script>alert(1)</script>"),
        (b"\x1b[31mred\x1b[0m", "\x1b[31mred\x1b[0m"),
        (b"a\x00b", "a\ufffdb"),
        (b"\xff\xfe\xc3(", "\ufffd\ufffd\ufffd("),
        (b"\xed\xa0\x80", "\ufffd\ufffd\ufffd"),  # half of a pair
        ("é☃".encode(), "é☃"),
        (b"x" + "é".encode() * 1024, "x" + "é" * 1023),
        ("☃".encode() * 683, "☃" * 682),
        (b"\x00" * 2048, "\ufffd" * 682),
        (b"\xff" * 4096, "\ufffd" * 682),
        (b"x" * 2047 + b"\xe2", "x" * 2047),  # a piece of a character; there is no room to say so
        (b"x" + b"\xe2", "x\ufffd"),
    ],
)
async def test_a_body_is_kept_as_text_of_whole_characters(body: bytes, text: str) -> None:
    answer = await response_to(webhook_server.ok(200, body))
    assert answer.body == text
    assert len(text.encode()) <= 2048


async def test_a_compressed_body_is_not_decoded() -> None:
    answer = await response_to(webhook_server.ok(200, b"\x1f\x8b\x08", "Content-Encoding: gzip"))
    assert (answer.body, answer.succeeded) == ("\x1f\ufffd\x08", True)


@pytest.mark.parametrize(
    "answer",
    [
        HEAD + b"X: " + b"y" * 1_000_000 + b"\r\n\r\n",
        HEAD + b"".join(b"X-%d: y\r\n" % number for number in range(10_000)) + b"Content-Length: 0\r\n\r\n",
        b"HTTP/1.1 OK 200\r\n\r\n",
        b"HTTP/1.1 99 What\r\nContent-Length: 0\r\n\r\n",
        b"ICY 200 OK\r\n\r\n",
        b"<html>of HTTP/0.9</html>",
        b"220 mail.example.org ESMTP\r\n",
        b"\x00\x01\x02\x03" * 10,
        HEAD + b"Content-Length: x\r\n\r\n",
        HEAD + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nxx",
        HEAD + b"X: a\rInjected: b\r\nContent-Length: 0\r\n\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\nx",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\nnot hex\r\n",
        HEAD + b"Content-Length: 10\r\nConnection: close\r\n\r\nhalf",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
        b"HTTP/2.0 200 OK\r\nContent-Length: 0\r\n\r\n",
        saying(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 100),
    ],
)
async def test_what_is_no_response_fails_the_attempt(answer: webhook_server.Answer) -> None:
    found = await response_to(answer)
    assert (found.status_code, found.body, found.succeeded) == (None, None, False)
    assert found.error is not None
    assert found.error.startswith("invalid_response: ")


async def test_an_endpoint_that_hangs_up_fails_the_attempt() -> None:
    found = await response_to(b"")
    assert found.error is not None
    assert found.error.startswith("connection_failed: ")


async def late(answer: webhook_server.Answer, *, tls: bool = True) -> str | None:
    """Why an attempt failed; the endpoint is left alone afterwards."""
    async with (
        webhook_server.running(answer=answer, tls=tls) as endpoint,
        running_client(endpoint=endpoint, allow_insecure=not tls) as guard,
    ):
        found = await guard.post(endpoint.literal_url, b"{}", HEADERS)
        await endpoint.left_alone()
        return found.error


async def never_shaking_hands() -> str | None:
    """The same for TCP that is accepted without a word of TLS; nothing is said in plain text then."""
    async with webhook_server.running(tls=False) as endpoint, running_client() as guard:
        found = await guard.post(f"https://{PUBLIC}:{endpoint.port}/", b"{}", HEADERS)
        await endpoint.left_alone()
        assert endpoint.requests == []
        return found.error


async def never_resolving() -> str | None:
    """The same for a name server that does not answer, which is no reason not to save the URL."""
    async with dns_server.running({NAME: dns_server.Fault.SILENCE}) as dns, running_client(dns) as guard:
        url = f"https://{NAME}/"
        found, saved = await asyncio.gather(guard.post(url, b"{}", HEADERS), guard.check(url))
        assert saved == url
        return found.error


async def test_a_slow_endpoint_has_five_seconds_for_everything() -> None:
    began = time.monotonic()
    *late_ones, unresolved = await asyncio.gather(
        late(None),
        late(None, tls=False),
        late(saying(HEAD + b"Content-Length: 100\r\n\r\n", b"x", pause=0.5)),
        late(saying(HEAD, b"X-Slow: yes\r\n", pause=0.5)),
        late(saying(b"", b"HTTP/1.1 100 Continue\r\n\r\n", pause=0.5)),
        never_shaking_hands(),
        never_resolving(),
    )
    assert late_ones == ["timeout: no complete response within 5 seconds"] * 6
    assert unresolved == f"dns_failure: {NAME}: no answer in time"
    # Never early; and late only as far as a busy machine is.
    assert 4.5 <= time.monotonic() - began <= 20


def expired(authority: trustme.CA) -> ssl.SSLContext:
    leaf = authority.issue_cert(NAME, PUBLIC, not_after=dt.datetime(2020, 1, 1, tzinfo=dt.UTC))
    return webhook_server.server_context(leaf)


def of_somebody_else(authority: trustme.CA) -> ssl.SSLContext:
    return webhook_server.server_context(authority.issue_cert("other.example.org", "127.0.0.3"))


def of_a_wildcard_of_the_parent(authority: trustme.CA) -> ssl.SSLContext:
    """It stands for one label, and never for an address."""
    return webhook_server.server_context(authority.issue_cert("*.org", f"*.{NAME}"))


def of_another_authority(_: trustme.CA) -> ssl.SSLContext:
    return webhook_server.server_context(trustme.CA().issue_cert(NAME, PUBLIC))


def self_signed(_: trustme.CA) -> ssl.SSLContext:
    """An authority that shows itself."""
    itself, context = trustme.CA(), ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    with itself.cert_pem.tempfile() as certificate, itself.private_key_pem.tempfile() as key:
        context.load_cert_chain(certificate, key)
    return context


def of_old_tls(authority: trustme.CA) -> ssl.SSLContext:
    context = webhook_server.server_context(authority.issue_cert(NAME, PUBLIC))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        context.minimum_version = ssl.TLSVersion.TLSv1
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    context.set_ciphers("ALL:@SECLEVEL=0")
    return context


@pytest.mark.parametrize(
    "identity, words",
    [
        (expired, "certificate has expired"),
        (of_somebody_else, "mismatch"),
        (of_a_wildcard_of_the_parent, "mismatch"),
        (of_another_authority, "unable to get local issuer certificate"),
        (self_signed, "self-signed certificate"),
        (of_old_tls, "TLS"),
    ],
)
async def test_an_endpoint_with_a_wrong_certificate_is_sent_nothing(
    identity: Callable[[trustme.CA], ssl.SSLContext], words: str
) -> None:
    authority = trustme.CA()
    async with (
        dns_server.running({NAME: {"A": [PUBLIC]}}) as dns,
        webhook_server.running(authority=authority, tls=identity(authority)) as endpoint,
        running_client(dns, endpoint) as guard,
    ):
        for url in (endpoint.url, endpoint.literal_url):
            answer = await guard.post(url, b"{}", HEADERS)
            assert (answer.status_code, answer.body) == (None, None)
            assert answer.error is not None
            assert answer.error.startswith("tls_failure: ")
            assert words in answer.error
        assert endpoint.requests == []
