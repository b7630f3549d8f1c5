"""What a route takes is read within its bounds, in order, and strictly."""

import enum
import threading
from typing import Annotated, Any, Literal

import msgspec
import pytest

from postroad import errors
from postroad.concurrency import fairness
from postroad.network.http import http_server
from postroad.protocol.text import strict_json
from postroad.web import request_reader, routing


class Kind(enum.StrEnum):
    BIG = "big"
    SMALL = "small"


class Note(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    text: str
    tags: list[str] | None = None
    size: int | None = None


class Filter(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    limit: Annotated[int, msgspec.Meta(ge=1, le=100)] | None = None
    kind: Kind | None = None
    order: Literal["up", "down"] | None = None
    exact: bool | None = None
    search: str | None = None


async def handler(_context: object, _request: routing.Request) -> routing.Response:
    return routing.Response(204)


def reader(**fields: Any) -> request_reader.Reader:
    return request_reader.Reader(
        routing.Route(
            method="POST",
            path="/notes",
            handler=handler,
            summary="",
            tag="",
            permission=None,
            responses={204: None},
            **{"body": Note, "query": Filter, "body_limit": 10, **fields},
        )
    )


def headers(**fields: str) -> routing.Headers:
    return routing.Headers(
        [(name.replace("_", "-").encode(), value.encode("latin-1")) for name, value in fields.items()]
    )


class Stream:
    """A body that arrives in parts; it knows how much of it was asked for."""

    def __init__(self, *parts: bytes) -> None:
        self.parts = list(parts)

    async def receive(self) -> tuple[bytes, bool]:
        if not self.parts:
            raise http_server.Disconnected
        return self.parts.pop(0), bool(self.parts)


@pytest.mark.parametrize("length", ["11", "1000000000000", "9" * 5000])
def test_a_declared_length_beyond_the_limit_is_refused_unread(length: str) -> None:
    with pytest.raises(errors.PayloadTooLarge, match="body: at most 10 bytes"):
        reader().check_size(headers(content_length=length))


@pytest.mark.parametrize("length", ["x", "-1", "", "+1", "²", "1_0", "0x1"])
def test_a_declared_length_is_a_number(length: str) -> None:
    with pytest.raises(errors.InvalidRequest, match="Content-Length: "):
        reader().check_size(headers(content_length=length))


def test_a_declared_length_within_the_limit_is_fine() -> None:
    reader().check_size(headers(content_length="10"))
    reader().check_size(headers())


@pytest.mark.parametrize("parts", [(b"0123456789",), (b"01234", b"", b"56789"), (b"",)])
async def test_a_body_is_put_together(parts: tuple[bytes, ...]) -> None:
    assert await reader().receive(Stream(*parts).receive) == b"".join(parts)


async def test_a_stream_is_cut_at_the_limit() -> None:
    stream = Stream(b"01234", b"56789", b"0", *[b"more"] * 100)
    with pytest.raises(errors.PayloadTooLarge):
        await reader().receive(stream.receive)
    assert len(stream.parts) == 100


async def test_one_large_part_is_refused() -> None:
    with pytest.raises(errors.PayloadTooLarge):
        await reader().receive(Stream(b"0" * 11).receive)


async def test_a_caller_that_leaves_is_noticed() -> None:
    with pytest.raises(http_server.Disconnected):
        await reader().receive(Stream().receive)


SMALL = b'{"text":"a"}'
JSON = {"content_type": "application/json"}


def test_a_body_that_is_there_is_read_at_once() -> None:
    taking = reader(body_limit=100, idempotent=True)
    fields = headers(**JSON, idempotency_key="k")
    assert taking.read_small(fields, SMALL) == ("k", Note(text="a"))


def test_a_body_that_is_there_is_checked_in_the_same_order() -> None:
    """Its length, its type, the key, then the text."""
    taking = reader(idempotent=True)
    with pytest.raises(errors.PayloadTooLarge):
        taking.read_small(headers(), b"x" * 11)
    with pytest.raises(errors.InvalidRequest, match="Content-Type"):
        taking.read_small(headers(), b"x")
    with pytest.raises(errors.InvalidRequest, match="Idempotency-Key"):
        taking.read_small(headers(**JSON), b"x")
    with pytest.raises(errors.InvalidRequest, match="body: "):
        taking.read_small(headers(**JSON, idempotency_key="k"), b"x")


@pytest.mark.parametrize(
    "value", ["application/json", "application/json; charset=utf-8", "Application/JSON", "application/json ;x=y"]
)
def test_json_is_the_content_type(value: str) -> None:
    reader().check_type(headers(content_type=value), b"{}")


@pytest.mark.parametrize(
    "value", ["", "text/plain", "application/jsonx", "text/json", "application/json, text/plain", ";"]
)
def test_another_content_type_is_refused(value: str) -> None:
    with pytest.raises(errors.InvalidRequest, match="Content-Type: must be application/json"):
        reader().check_type(headers(content_type=value), b"{}")


def test_a_route_may_take_another_type_and_reads_it_itself() -> None:
    taking = reader(body=bytes, body_type="text/csv")
    taking.check_type(headers(content_type="text/CSV; charset=utf-8"), b"a,b")
    assert taking.decode(b"\xff,b") == b"\xff,b"
    with pytest.raises(errors.InvalidRequest, match=r"^Content-Type: must be text/csv$"):
        taking.check_type(headers(content_type="application/json"), b"{}")


def test_a_missing_content_type_is_refused() -> None:
    with pytest.raises(errors.InvalidRequest, match="Content-Type"):
        reader().check_type(headers(), b"{}")


def test_an_optional_body_may_be_missing_with_its_content_type() -> None:
    optional = reader(body=Filter, body_required=False)
    optional.check_type(headers(), b"")
    assert optional.decode(b"") == Filter()
    with pytest.raises(errors.InvalidRequest, match="Content-Type"):
        optional.check_type(headers(), b"{}")


@pytest.mark.parametrize("encoding", ["gzip", "br", "deflate", "identity, gzip", ""])
def test_a_compressed_body_is_refused(encoding: str) -> None:
    with pytest.raises(errors.InvalidRequest, match="Content-Encoding"):
        reader().check_type(headers(content_type="application/json", content_encoding=encoding), b"{}")


def test_identity_is_no_compression() -> None:
    reader().check_type(headers(content_type="application/json", content_encoding="Identity"), b"{}")


@pytest.mark.parametrize("key", ["a", "a" * 255, "a b", "5e0c…".encode().decode("latin-1")])
def test_an_idempotency_key_is_the_clients_choice(key: str) -> None:
    assert reader().idempotency_key(headers(idempotency_key=key))


def test_an_idempotency_key_is_counted_in_characters() -> None:
    key = "é" * 255
    assert reader().idempotency_key(headers(idempotency_key=key.encode().decode("latin-1"))) == key
    assert reader().idempotency_key(headers(idempotency_key=key)) == key


@pytest.mark.parametrize("given", [{}, {"idempotency_key": ""}, {"idempotency_key": "a" * 256}])
def test_a_missing_or_long_idempotency_key_is_refused(given: dict[str, str]) -> None:
    with pytest.raises(errors.InvalidRequest, match="Idempotency-Key: "):
        reader().idempotency_key(headers(**given))


def test_a_whole_number_may_be_written_as_a_fraction() -> None:
    assert reader().decode(b'{"text": "a", "size": 4.0}') == Note(text="a", size=4)


def test_a_body_becomes_the_routes_struct() -> None:
    assert reader().decode(b'{"tags": null, "text": "a"}') == Note(text="a")


@pytest.mark.parametrize(
    "body, problem",
    [
        (b"", "body: "),
        (b"{", "body: "),
        (b'{"text": "a", "text": "b"}', "body: "),
        (b'{"text": NaN}', "body: "),
        (b"[" * 100_000, "body: "),
        (b'{"text": "\\ud800"}', "body: "),
        (b'{"text": "\xff"}', "body: "),
        (b"[]", "body: expected a JSON object, got an array"),
        (b'{"text": 1}', "text: expected a string, got an integer"),
        (b'{"txt": "a"}', "txt: unknown member; did you mean 'text'?"),
    ],
)
def test_a_body_that_is_wrong_is_refused_with_its_place(body: bytes, problem: str) -> None:
    with pytest.raises(errors.InvalidRequest) as refused:
        reader().decode(body)
    assert refused.value.message.startswith(problem)


@pytest.mark.parametrize(
    "text, expected",
    [
        (b"", Filter()),
        (b"limit=7&kind=big&order=up&exact=true", Filter(limit=7, kind=Kind.BIG, order="up", exact=True)),
        (b"search=a+b%20c%26d%C3%A9&exact=false", Filter(search="a b c&dé", exact=False)),
        (b"search=", Filter(search="")),
        (b"search=null", Filter(search="null")),
        (b"%6cimit=1", Filter(limit=1)),
    ],
)
def test_a_query_becomes_the_routes_struct(text: bytes, expected: Filter) -> None:
    assert reader().read_query(text) == expected


@pytest.mark.parametrize(
    "text, problem",
    [
        (b"limt=1", "limt: unknown parameter; did you mean 'limit'?"),
        (b"account_id=acc_1", "account_id: unknown parameter"),
        (b"limit=1&limit=1", "limit: sent more than once; send it once"),
        (b"limit=", "limit: expected an integer"),
        (b"limit=x", "limit: expected an integer"),
        (b"limit=1.0", "limit: expected an integer"),
        (b"limit=null", "limit: expected an integer"),
        (b"limit=%D9%A1", "limit: expected an integer"),
        (b"limit=+1", "limit: expected an integer"),
        (b"limit=--1", "limit: expected an integer"),
        (b"limit=" + b"9" * 5000, "limit: expected an integer"),
        (b"limit=0", "limit: at least 1"),
        (b"limit=-5", "limit: at least 1"),
        (b"limit=101", "limit: at most 100"),
        (b"exact=1", "exact: expected true or false"),
        (b"kind=middle", "kind: expected one of 'big', 'small'"),
        (b"order=left", "order: expected one of 'down', 'up'"),
        (b"search=%FF", "query: "),
        (b"&".join([b"search=a"] * 50), "query: at most 32 parameters"),
    ],
)
def test_a_query_that_is_wrong_is_refused_with_its_place(text: bytes, problem: str) -> None:
    with pytest.raises(errors.InvalidRequest) as refused:
        reader().read_query(text)
    assert refused.value.message.startswith(problem)


@pytest.mark.parametrize(
    "document, others",
    [
        ({"text": "a"}, 0),
        ({"text": "a" * 2 * (64 * 1024)}, 0),
        ({"text": "a" * 2 * (64 * 1024), "size": 1}, 1),
        ({"text": "a" * 4 * (64 * 1024)}, 1),
    ],
)
async def test_only_what_is_large_and_not_plain_is_decoded_in_a_thread(
    document: dict[str, Any], others: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[int] = []
    read_other = strict_json.read_other

    def noting(raw: bytes) -> object:
        threads.append(threading.get_ident())
        return read_other(raw)

    monkeypatch.setattr(strict_json, "read_other", noting)
    few = fairness.FairThreads(1, name="test")
    try:
        assert await reader().decode_async(msgspec.json.encode(document), threads=few, party="") == Note(**document)
    finally:
        few.close()
    assert len(set(threads) - {threading.get_ident()}) == others
