"""Forms of browsers are read into the same Structs as JSON, as strictly, and with their habits in mind."""

import threading
from typing import Literal

import msgspec
import pytest

from postroad import errors
from postroad.web import request_reader, routing
from tests.api import app_server


class Order(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    note: str | None = None
    count: int | None = None
    gift: bool | None = None
    extras: tuple[str, ...] | None = None
    size: Literal[1, 2] | None = None


async def handler(_context: object, _request: routing.Request) -> routing.Response:
    return routing.Response(204)


READER = request_reader.Reader(
    routing.Route(
        method="POST",
        path="/orders",
        handler=handler,
        summary="",
        tag="",
        permission=None,
        responses={204: None},
        body=Order,
        body_type=routing.FORM,
    )
)


def read(body: bytes) -> object:
    order: object = READER.decode(body)
    return order


def test_fields_become_members_of_their_types() -> None:
    assert read(b"name=Ada+L%C3%B6v&count=3&gift=true&size=2") == Order("Ada Löv", count=3, gift=True, size=2)


def test_an_empty_field_counts_as_not_given() -> None:
    assert read(b"name=x&note=&count=&extras=") == Order("x")


def test_a_list_is_a_field_sent_again() -> None:
    assert read(b"name=x&extras=a&extras=b") == Order("x", extras=("a", "b"))


def test_lines_end_as_text_does() -> None:
    assert read(b"name=x&note=one%0D%0Atwo") == Order("x", note="one\ntwo")


@pytest.mark.parametrize(
    "body, said",
    [
        (b"name=", "name"),
        (b"", "name"),
        (b"name=a&name=b", "name: sent more than once; send it once"),
        (b"name=a&nmae=b", "nmae"),
        (b"name=a&count=many", "count: expected an integer"),
        (b"name=a&gift=perhaps", "gift: expected true or false"),
        (b"name=%ff", "percent-encoded as UTF-8"),
        ("name=ä".encode(), "percent-encoded as UTF-8"),
        (b"&".join(b"extras=%d" % number for number in range(200)), "at most 128"),
    ],
)
def test_what_is_wrong_is_said(body: bytes, said: str) -> None:
    with pytest.raises(errors.InvalidRequest, match=said):
        read(body)


def test_a_form_has_to_say_that_it_is_one() -> None:
    for content_type in ("text/plain", "application/json", "multipart/form-data; boundary=x"):
        headers = routing.Headers([(b"content-type", content_type.encode())])
        with pytest.raises(errors.InvalidRequest, match="Content-Type"):
            READER.check_type(headers, b"name=x")
    READER.check_type(
        routing.Headers([(b"content-type", b"application/x-www-form-urlencoded; charset=UTF-8")]), b"name=x"
    )


def test_a_sign_of_percent_that_begins_no_escape_is_refused() -> None:
    for body in (b"name=100%", b"name=%4", b"name=%zz", b"%=x", b"name=%%34"):
        with pytest.raises(errors.InvalidRequest, match="percent-encoded as UTF-8"):
            read(body)


async def test_a_large_body_is_decoded_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[bool] = []
    decode = request_reader.Reader.decode

    def noting(self: request_reader.Reader, body: bytes) -> object:
        threads.append(threading.current_thread() is threading.main_thread())
        decoded: object = decode(self, body)
        return decoded

    monkeypatch.setattr(request_reader.Reader, "decode", noting)
    route = routing.Route(
        method="POST",
        path="/orders",
        handler=handler,
        summary="",
        tag="",
        permission=None,
        responses={204: None},
        body=Order,
        body_type=routing.FORM,
    )
    async with app_server.running([route]) as opened:
        for size in (10, (64 * 1024) + 1):
            answer = await opened.client.post("/orders", data={"name": "ä" * size})
            assert answer.status_code == 204
        assert threads == [True, False]
        refused = await opened.client.post("/orders", data={"nmae": "ä" * size})
        assert (refused.status_code, refused.json()["code"]) == (400, "invalid_request")
