"""Messages as large or as twisted as an enemy makes them: looked into in one pass, within bounds, and it is said."""

import tracemalloc

import pytest

from postroad.protocol.mime import preview_parser

MULTIPART = b"Content-Type: multipart/mixed; boundary=a\r\n\r\n"
INNER = b"--a\r\nContent-Type: multipart/mixed; boundary=a\r\n\r\n"


def nested(levels: int) -> bytes:
    """A multipart in a multipart, and so on."""
    head, body, tail = ['Content-Type: multipart/mixed; boundary="b0"\r\n\r\n'], [], []
    for level in range(levels):
        body.append(f'--b{level}\r\nContent-Type: multipart/mixed;\r\n boundary="b{level + 1}"\r\n\r\n')
        tail.append(f"\r\n--b{level}--\r\n")
    return "".join([*head, *body, f"--b{levels}\r\n\r\ntext", *tail[::-1]]).encode()


def test_multiparts_are_opened_to_a_depth() -> None:
    (part,) = preview_parser.read(nested(20 - 1)).parts
    assert (part.content_type, part.path) == ("text/plain", ".".join("1" * 20))
    deeper = preview_parser.read(nested(20))
    assert [part.content_type for part in deeper.parts] == ["multipart/mixed"]
    assert deeper.truncated


@pytest.mark.parametrize("more", [0, 1])
@pytest.mark.parametrize("is_grouped", [False, True])
def test_so_many_parts_are_found(more: int, *, is_grouped: bool) -> None:
    parts = b"--a\r\n\r\nx\r\n" * 500
    if is_grouped:
        inner = parts.replace(b"--a", b"--c")
        parts = b"--a\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n" + inner + b"--c--\r\n"
    reading = preview_parser.read(MULTIPART + parts + b"--a\r\n\r\nlast\r\n" * more + b"--a--\r\n")
    assert len(reading.parts) == 500
    assert all(part.size == 1 for part in reading.parts)
    assert reading.truncated == bool(more)


@pytest.mark.parametrize("more", [0, 1])
def test_so_many_fields_are_read(more: int) -> None:
    reading = preview_parser.read(b"A: b\r\n" * (2000 + more) + b"\r\nbody")
    assert len(reading.headers) == 2000
    assert reading.truncated == bool(more)
    assert reading.body(reading.parts[0]) == b"body"


def test_a_header_that_never_ends_has_no_body() -> None:
    reading = preview_parser.read(b"A: b\r\nC: " + b"x" * 262_144 + b"\r\n\r\nbody")
    assert reading.headers[0] == ("A", "b")
    assert reading.truncated
    assert [part.size for part in reading.parts] == [0]


def test_a_part_with_an_endless_header_hides_no_other_part() -> None:
    endless = b"--a\r\nA: " + b"x" * 16_384 + b"\r\n\r\nbody\r\n"
    reading = preview_parser.read(MULTIPART + endless + b"--a\r\n\r\nnext\r\n--a--")
    assert [reading.body(part) for part in reading.parts] == [b"", b"next"]
    assert reading.truncated


# Anything that is not linear takes minutes for these, and recursion ends in an error.
@pytest.mark.parametrize(
    "content, truncated",
    [
        (nested(10_000), True),
        (MULTIPART + b"--a\r\n\r\nx\r\n" * 1_000_000, True),
        (MULTIPART + b"--a\r\n" * 1_000_000, True),
        (MULTIPART + INNER * 100_000, True),
        (b"A: b\r\n" * 1_000_000, True),
        (b"A:" + b"\r\n b" * 1_000_000, True),
        (MULTIPART + b"-" * 10 * 1024 * 1024, False),
        (MULTIPART + b"--\n" * 3_500_000, True),
        (MULTIPART + b"--aa\r\n" * 1_000_000, True),
        (MULTIPART + b"--a" * 3_000_000, False),
        (MULTIPART + (b"--a\r\n" + b"x:y\r\n" * 3_000 + b"\r\nz\r\n") * 500, True),
        (b"Content-Type: a/b" + b"; a" * 80_000 + b"\r\n\r\n", False),
        (b"Content-Type: a/b" + b';a="' * 60_000 + b"\r\n\r\n", False),
        (b"Content-Type: a/b;" + b" " * 250_000 + b"\r\n\r\n", False),
        (b"Subject: " + b"=?utf-8?q?" * 25_000 + b"\r\n\r\n", False),
        (b"Content-Transfer-Encoding: base64\r\n\r\n" + b"A=\r\n" * 2_500_000, False),
        (b"Content-Transfer-Encoding: quoted-printable\r\n\r\n" + b"=\r" * 5_000_000, False),
        (b"\r" * 10_000_000, True),
        (b"\n" * 10_000_000, False),
    ],
    ids=[
        "nested", "parts", "delimiters", "same boundary", "fields", "folds", "dashes", "dashed lines", "prefix",
        "one line", "part headers", "parameters", "quotes", "spaces", "words", "base64", "quoted", "cr", "lf",
    ],
)  # fmt: skip
def test_a_bomb_is_read_in_one_pass(content: bytes, *, truncated: bool) -> None:
    reading = preview_parser.read(content)
    assert reading.truncated == truncated
    assert 1 <= len(reading.parts) <= 500
    assert len(reading.headers) <= 2000


def test_a_large_message_is_not_copied_over_and_over() -> None:
    content = MULTIPART + (b"--a\r\nContent-Transfer-Encoding: base64\r\n\r\n" + b"QUJD" * 500_000 + b"\r\n") * 10
    tracemalloc.start()
    try:
        assert [part.size for part in preview_parser.read(content).parts] == [1_500_000] * 10
        assert tracemalloc.get_traced_memory()[1] < len(content)
    finally:
        tracemalloc.stop()
