"""A head says how its content ends, and nothing that its fields were not allowed to say."""

from typing import Any

import pytest

from postroad.network.http import http_messages
from postroad.network.http.http_messages import Framing


def head(status: int = 200, fields: tuple[http_messages.Field, ...] = (), **facts: Any) -> http_messages.Head:
    return http_messages.head(status, fields, **{"date": b"date: now", "keep_alive": True, "size": None, **facts})


def test_fields_keep_their_order_and_their_bytes() -> None:
    content, *_ = head(404, ((b"b", b"1"), (b"a", b"\xe9"), (b"b", b"2")), size=0)
    start = b"HTTP/1.1 404 Not Found\r\ndate: now\r\n"
    assert content == start + b"b: 1\r\na: \xe9\r\nb: 2\r\ncontent-length: 0\r\n\r\n"


def test_a_status_without_a_name_is_still_a_status_line() -> None:
    assert head(299)[0].startswith(b"HTTP/1.1 299 \r\n")


@pytest.mark.parametrize(
    "status, fields, facts, framing",
    [
        (200, ((b"content-length", b"5"),), {}, (Framing.LENGTH, 5, True)),
        (200, ((b"content-length", b"5"),), {"size": 9}, (Framing.LENGTH, 5, True)),
        (200, (), {"size": 9}, (Framing.LENGTH, 9, True)),
        (200, (), {}, (Framing.CHUNKED, 0, True)),
        (200, (), {"version": "1.0"}, (Framing.CLOSE, 0, False)),
        (204, (), {"size": 0}, (Framing.NOTHING, 0, True)),
        (304, (), {}, (Framing.NOTHING, 0, True)),
        (200, (), {"method": "HEAD"}, (Framing.NOTHING, 0, True)),
    ],
)
def test_the_framing_is_what_the_caller_can_read(
    status: int, fields: tuple[http_messages.Field, ...], facts: dict[str, Any], framing: tuple[Framing, int, bool]
) -> None:
    content, *decided = head(status, fields, **facts)
    assert tuple(decided) == framing
    assert (b"transfer-encoding: chunked" in content) == (framing[0] is Framing.CHUNKED)
    assert content.count(b"content-length") == (framing[0] is Framing.LENGTH)
    assert (b"connection: close" in content) == (not framing[2])


@pytest.mark.parametrize("value, kept", [(b"Close", False), (b"keep-alive", True)])
def test_an_application_may_end_the_connection_and_no_more(value: bytes, kept: bool) -> None:  # noqa: FBT001
    content, framing, _, keep_alive = head(fields=((b"connection", value), (b"transfer-encoding", b"gzip")))
    assert keep_alive is kept
    assert framing is Framing.CHUNKED
    assert content.count(b"connection") == (not kept)
    assert b"gzip" not in content


@pytest.mark.parametrize("value", [b"a\r\nb: c", b"a\nb: c", b"a\rb", b"a\0b"])
def test_a_field_cannot_write_a_line_of_its_own(value: bytes) -> None:
    for field in ((b"x", value), (value, b"x")):
        with pytest.raises(ValueError, match="line break"):
            head(fields=(field,))


def test_an_empty_part_is_not_the_last_chunk() -> None:
    assert http_messages.chunk(b"", last=False) == b""
    assert http_messages.chunk(b"", last=True) == b"0\r\n\r\n"
    assert http_messages.chunk(b"x" * 17, last=True) == b"11\r\n" + b"x" * 17 + b"\r\n0\r\n\r\n"
