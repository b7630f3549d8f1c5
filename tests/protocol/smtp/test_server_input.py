"""Lines and content out of a buffer: complete or not at all, within their limits, and without looking twice."""

import hypothesis
import pytest
from hypothesis import strategies as st

from postroad.protocol.smtp import server_input


def test_a_line_is_taken_when_it_is_complete() -> None:
    buffer = bytearray(b"NOOP\r")
    assert server_input.take_line(buffer, 10) is None
    buffer += b"\nQUIT\r\n"
    assert server_input.take_line(buffer, 10) == b"NOOP\r\n"
    assert buffer == b"QUIT\r\n"


def test_nothing_is_given_of_a_line_that_is_too_long_and_little_is_kept() -> None:
    buffer = bytearray()
    for _ in range(10):
        buffer += b"x" * 50
        assert server_input.take_line(buffer, 10) is None
        assert len(buffer) <= 11
    buffer += b"\r\nNOOP\r\n"
    assert server_input.take_line(buffer, 10) == b""
    assert server_input.take_line(buffer, 10) == b"NOOP\r\n"


def test_content_is_taken_at_its_end_and_what_follows_is_left() -> None:
    reader = server_input.DotStuffed(100)
    buffer = bytearray(b"\r\na\r\n..b\r\n.\r\nQUIT\r\n")
    assert reader.read(buffer)
    assert reader.content() == b"a\r\n.b\r\n"
    assert buffer == b"QUIT\r\n"


def test_an_end_that_comes_octet_by_octet_is_found() -> None:
    reader = server_input.DotStuffed(10)
    buffer = bytearray(b"\r\n")
    for octet in b"x" * 100 + b"\r\n.\r":
        buffer.append(octet)
        assert not reader.read(buffer)
    buffer += b"\n"
    assert reader.read(buffer)
    assert (reader.content(), reader.is_too_large) == (b"", True)


def test_the_limit_is_exact() -> None:
    for size, is_too_large in ((100, False), (101, True)):
        reader = server_input.DotStuffed(100)
        assert reader.read(bytearray(b"\r\n" + b"x" * (size - 2) + b"\r\n.\r\n"))
        assert reader.is_too_large is is_too_large


def test_chunks_are_put_together() -> None:
    chunks = server_input.Chunks(10)
    chunks.begin(3, is_last=False)
    buffer = bytearray(b"ab")
    assert not chunks.read(buffer)
    buffer += b"cdefg"
    assert chunks.read(buffer)
    assert buffer == b"defg"
    chunks.begin(4, is_last=True)
    assert chunks.read(buffer)
    assert (chunks.content(), chunks.is_complete, chunks.is_too_large) == (b"abcdefg", True, False)
    chunks.begin(4, is_last=True)
    assert chunks.is_too_large
    assert chunks.read(bytearray(b"wxyz"))
    assert chunks.content() == b""


@pytest.mark.parametrize("content", [b"a\n", b"\na", b"a\r", b"a\rb\r\n", b"\n\r", b"\r\r\n", b"a\r\n\n"])
def test_a_cr_or_lf_alone_is_noticed(content: bytes) -> None:
    assert server_input.has_bare_line_ends(content)
    assert not server_input.has_bare_line_ends(b"a\r\n\r\nb")


@pytest.mark.parametrize(
    "content, normal",
    [
        (b"", b""),
        (b"a", b"a"),
        (b"a\r\n\r\nb", b"a\r\n\r\nb"),
        (b"a\n", b"a\r\n"),
        (b"\n\na\r\n\n", b"\r\n\r\na\r\n\r\n"),
        (b"\r", None),
        (b"a\r\r\n", None),
        (b"a\rb\n", None),
        (b"\n\r", None),
    ],
)
def test_a_bare_lf_becomes_a_line_end_and_a_bare_cr_has_no_normal_form(content: bytes, normal: bytes | None) -> None:
    assert server_input.normalise(content) == normal


@hypothesis.given(st.lists(st.sampled_from([b"\r", b"\n", b"\r\n", b".", b"\x85", b"\x0b"]), max_size=12).map(b"".join))
def test_nothing_but_cr_lf_ends_a_line(content: bytes) -> None:
    without = content.replace(b"\r\n", b"")
    assert server_input.has_bare_line_ends(content) == (b"\r" in without or b"\n" in without)
    assert (server_input.normalise(content) is None) == (b"\r" in without)
