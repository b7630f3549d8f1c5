"""Responses are read alike wherever their bytes are split; what is broken, endless or not asked for is found."""

import random

import pytest

from postroad.network.http import http_client
from postroad.network.http.http_client import Response

MAX_BODY = 64
PLAIN = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello"
CHUNKED = (
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n2\r\nde\r\n0\r\nContent-Type: a/b\r\n\r\n"
)
EMPTY = b"HTTP/1.1 204 No Content\r\n\r\n"
INTERIM = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"


def read(*parts: bytes, max_body: int = MAX_BODY) -> tuple[Response | None, http_client.ResponseParser]:
    """The response and its reader; parts behind the response are not read."""
    reader = http_client.ResponseParser()
    reader.begin(max_body=max_body)
    for part in parts:
        if (response := reader.feed(part)) is not None:
            return response, reader
    return None, reader


def complete(*parts: bytes, max_body: int = MAX_BODY) -> Response:
    response, _ = read(*parts, max_body=max_body)
    assert response is not None
    return response


def trouble(*parts: bytes) -> str:
    with pytest.raises(http_client.HttpClientError) as caught:
        read(*parts)
    assert caught.value.code == "invalid_response"
    return str(caught.value)


def ended(*parts: bytes) -> Response | http_client.HttpClientError:
    response, reader = read(*parts)
    assert response is None
    return reader.end()


@pytest.mark.parametrize("raw", [PLAIN, CHUNKED, EMPTY, INTERIM + PLAIN])
def test_a_response_is_the_same_wherever_its_bytes_are_split(raw: bytes) -> None:
    whole = complete(raw)
    for cut in range(1, len(raw)):
        assert complete(raw[:cut], raw[cut:]) == whole
    assert complete(*(raw[index : index + 1] for index in range(len(raw)))) == whole


def test_a_response_is_its_status_its_fields_and_its_body() -> None:
    headers = {b"content-type": b"text/plain", b"content-length": b"5"}
    assert complete(PLAIN) == Response(200, headers, b"hello")


def test_chunks_are_joined_and_trailers_are_nobodys() -> None:
    assert complete(CHUNKED) == Response(200, {b"transfer-encoding": b"chunked"}, b"abcde")


def test_interim_responses_leave_nothing_behind() -> None:
    assert complete(INTERIM + PLAIN) == complete(PLAIN)


def test_content_is_not_decoded() -> None:
    raw = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\n\x1f\x8b"
    assert complete(raw).body == b"\x1f\x8b"


@pytest.mark.parametrize("status", [200, 299, 301, 404, 599, 999])
def test_every_final_status_is_a_response(status: int) -> None:
    assert complete(b"HTTP/1.1 %d Whatever\r\nContent-Length: 0\r\n\r\n" % status).status == status


@pytest.mark.parametrize(
    "raw",
    [
        b"hello",
        b"<html>HTTP/0.9 had no head</html>",
        b"220 mx.example.org ESMTP\r\n",
        b"\r\n" + PLAIN,
        b"RTSP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n",
        b"ICE/1.0 200 OK\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/0.9 200 OK\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/2.0 200 OK\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 2 OK\r\n\r\n",
        b"HTTP/1.1 099 OK\r\n\r\n",
        b"HTTP/1.1 two hundred\r\n\r\n",
        b"HTTP/1.1 200 OK\nContent-Length: 0\n\n",
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: a\r\n folded\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: \x00\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999999999\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nnot a size\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
        INTERIM + b"nonsense",
    ],
)
def test_what_is_not_http_is_reported_wherever_it_is_split(raw: bytes) -> None:
    assert trouble(raw) == "the response is not HTTP"
    assert trouble(*(raw[index : index + 1] for index in range(len(raw)))) == "the response is not HTTP"


def test_random_bytes_are_never_a_response_and_never_a_crash() -> None:
    chance = random.Random(7)
    for _ in range(2000):
        raw = bytearray(PLAIN)
        for _ in range(chance.randint(1, 4)):
            raw[chance.randrange(len(raw))] = chance.randrange(256)
        try:
            response, _ = read(bytes(raw))
        except http_client.HttpClientError:
            continue
        assert response is None or len(response.body) <= MAX_BODY


def test_a_head_has_at_most_a_hundred_fields_with_those_of_interim_ones() -> None:
    end = b"Content-Length: 0\r\n\r\n"
    assert complete(b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 99 + end).status == 200
    assert trouble(b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 100 + end) == "the response has too many header fields"
    early = b"HTTP/1.1 103 Early Hints\r\n" + b"X: y\r\n" * 60 + b"\r\n"
    assert trouble(early, early) == "the response has too many header fields"


@pytest.mark.parametrize(
    "start, rest",
    [
        (b"HTTP/1.1 200 ", b"O"),
        (b"HTTP/1.1 200 OK\r\n", b"X"),
        (b"HTTP/1.1 200 OK\r\nX: ", b"y"),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;", b"x"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: ", b"y"),
    ],
)
def test_all_that_is_not_body_has_one_budget(start: bytes, rest: bytes) -> None:
    endless = start + rest * http_client.OVERHEAD_BYTES
    assert trouble(endless) == "the response header is too long"
    assert trouble(*(endless[index : index + 999] for index in range(0, len(endless), 999))) == (
        "the response header is too long"
    )


def test_a_body_in_small_chunks_fits_the_budget() -> None:
    raw = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * 2048 + b"0\r\n\r\n"
    assert complete(raw, max_body=2048).body == b"x" * 2048


@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000000\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffff\r\n",
    ],
)
def test_a_body_is_cut_when_more_comes_than_is_wanted(head: bytes) -> None:
    response, reader = read(head, b"x" * MAX_BODY)
    assert response is None
    response = reader.feed(b"x")
    assert response is not None
    assert response.is_truncated
    assert response.body == b"x" * MAX_BODY
    assert not reader.is_reusable
    assert complete(head + b"x" * 100_000).body == b"x" * MAX_BODY


def test_a_body_of_many_chunks_is_cut_however_many_come_at_once() -> None:
    raw = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"8\r\n12345678\r\n" * 10_000
    assert complete(raw).body == b"12345678" * 8
    assert complete(*(raw[index : index + 7] for index in range(0, len(raw), 7))).body == b"12345678" * 8


def test_a_body_that_is_exactly_as_long_as_wanted_is_not_cut() -> None:
    response, reader = read(b"HTTP/1.1 200 OK\r\nContent-Length: 64\r\n\r\n" + b"x" * MAX_BODY)
    assert response is not None
    assert not response.is_truncated
    assert reader.is_reusable


def test_no_body_is_wanted_and_none_is_kept() -> None:
    response = complete(PLAIN, max_body=0)
    assert response.body == b""
    assert response.is_truncated


@pytest.mark.parametrize(
    "raw, is_reusable",
    [
        (PLAIN, True),
        (CHUNKED, True),
        (EMPTY, True),
        (INTERIM + PLAIN, True),
        (b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n", True),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", False),
        (b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", False),
        (b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\nbody", False),
        (PLAIN + PLAIN, False),
        (PLAIN + b"x", False),
        (EMPTY + b"a body that must not be", False),
        (PLAIN + b"x" * 100_000, False),
    ],
)
def test_the_next_response_may_follow_one_that_ended_where_it_said(raw: bytes, *, is_reusable: bool) -> None:
    response, reader = read(raw)
    assert response is not None
    assert reader.is_reusable is is_reusable


def test_a_reader_reads_one_response_after_the_other() -> None:
    reader = http_client.ResponseParser()
    for raw in (PLAIN, CHUNKED, EMPTY, PLAIN):
        reader.begin(max_body=MAX_BODY)
        assert reader.is_empty
        assert reader.feed(raw) == complete(raw)
        assert not reader.is_empty


@pytest.mark.parametrize("coding", [b"", b"Transfer-Encoding: gzip\r\n"])
def test_a_body_without_a_length_ends_with_the_connection(coding: bytes) -> None:
    response = ended(b"HTTP/1.1 200 OK\r\n" + coding + b"\r\nsome", b"thing")
    assert isinstance(response, Response)
    assert response.body == b"something"
    assert response.ends_with_connection
    assert not response.is_truncated


@pytest.mark.parametrize(
    "raw",
    [
        b"H",
        b"HTTP/1.1 200 OK\r\nX: y\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfour",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
    ],
)
def test_a_response_that_ends_too_early_is_none(raw: bytes) -> None:
    found = ended(raw)
    assert isinstance(found, http_client.HttpClientError)
    assert found.code == "invalid_response"
    assert str(found) == "the response ends before it is complete"


def test_a_mistake_of_ours_is_loud(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(http_client.ResponseParser, "on_headers_complete", fail)
    with pytest.raises(ZeroDivisionError):
        read(PLAIN)
