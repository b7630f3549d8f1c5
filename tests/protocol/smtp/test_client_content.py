"""Whatever the content is, the server reads the same lines, one end, and no bare CR or LF."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroad.protocol.smtp import client

PIECES = st.lists(st.lists(st.sampled_from([b"a", b".", b"\r", b"\n", b"\r\n", b"\r\n."])).map(b"".join), max_size=4)


def received(wire: bytes) -> bytes:
    """As a server undoes it (RFC 5321 section 4.5.2)."""
    return b"".join(line.removeprefix(b".") for line in wire.splitlines(keepends=True))


@given(pieces=PIECES)
def test_a_server_gets_the_lines_that_were_meant(pieces: list[bytes]) -> None:
    wire = client.transparent(pieces)
    content = b"".join(pieces)
    meant = re.sub(rb"\r\n|\r|\n", b"\r\n", content)
    assert received(wire) == (meant if meant.endswith(b"\r\n") else meant + b"\r\n")


@given(pieces=PIECES)
def test_nothing_in_it_looks_like_its_end(pieces: list[bytes]) -> None:
    wire = b"\r\n" + client.transparent(pieces)
    assert wire.endswith(b"\r\n")
    assert b"\r\n.\r\n" not in wire
    assert re.search(rb"\r(?!\n)|(?<!\r)\n", wire) is None


@pytest.mark.parametrize("content", [b"a: b\r\n\r\nc\r\n", b"x" * 5000 + b"\r\n"])
def test_what_needs_nothing_stays_the_same_object(content: bytes) -> None:
    assert client.transparent((content,)) is content


def test_a_line_end_and_a_dot_in_different_pieces_meet() -> None:
    assert client.transparent((b"a\r", b"\n", b".b\r\n")) == b"a\r\n..b\r\n"


def test_a_smuggled_end_becomes_a_line_with_a_dot() -> None:
    assert client.transparent((b"a\n.\nMAIL FROM:<x>\r.\r",)) == b"a\r\n..\r\nMAIL FROM:<x>\r\n..\r\n"
