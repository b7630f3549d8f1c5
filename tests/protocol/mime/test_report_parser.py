"""The walk over foreign messages: parts in order, within bounds, whatever the bytes."""

import email.message
import email.policy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroad.protocol.mime import report_parser


def types(content: bytes) -> list[str]:
    return [part.content_type for part in report_parser.walk(content)]


def multipart(*parts: bytes, boundary: bytes = b"b") -> bytes:
    head = b"Content-Type: multipart/mixed; boundary=" + boundary + b"\n\n"
    return head + b"".join(b"--" + boundary + b"\n" + part + b"\n" for part in parts) + b"--" + boundary + b"--\n"


def test_a_plain_message_is_its_only_part() -> None:
    (part,) = report_parser.walk(b"Subject: Hello\r\n\r\nLine one\r\nline two\r\n")
    assert part.fields == {"subject": "Hello"}
    assert part.text == "Line one\nline two\n"
    assert part.content_type == "text/plain"


def test_parts_come_in_order_and_messages_inside_stay_closed() -> None:
    inner = multipart(b"Content-Type: text/html\n\n<b>", b"Content-Type: IMAGE/PNG ; name=x\n\nx", boundary=b"inner")
    other = b"Content-Type: message/rfc822\n\n" + multipart(b"Content-Type: text/css\n\n", boundary=b"other")
    content = multipart(b"\nno header", inner, other)
    assert types(content) == ["text/plain", "text/html", "image/png", "message/rfc822"]


@pytest.mark.parametrize(
    "parameters, boundary",
    [
        ('boundary="a b"', "a b"),
        ("charset=x; Boundary = 'b'", "'b'"),
        ('BOUNDARY="=_?:;"', "=_?:;"),
        ("boundary=b ; charset=x", "b"),
        ("\n\tboundary=b", "b"),
    ],
)
def test_boundaries_are_found_as_people_write_them(parameters: str, boundary: str) -> None:
    line = f"--{boundary}"
    content = f"Content-Type: multipart/mixed; {parameters}\n\nbefore\n{line}  \n\none\n{line}\n\ntwo\n{line}--\nafter"
    assert [part.text for part in report_parser.walk(content.encode())] == ["one", "two"]


def test_what_only_looks_like_a_delimiter_is_text() -> None:
    content = b"Content-Type: multipart/mixed; boundary=b\n\n--b\n\none --b\n--bc\n --b\n--b--c\n--b--"
    assert [part.text for part in report_parser.walk(content)] == ["one --b\n--bc\n --b\n--b--c"]


def test_a_missing_end_is_the_end_of_the_message() -> None:
    content = b"Content-Type: multipart/mixed; boundary=b\n\n--b\n\none\n--b\n\ntwo"
    assert [part.text for part in report_parser.walk(content)] == ["one", "two"]


def test_a_multipart_without_boundary_is_a_part_itself() -> None:
    assert types(b"Content-Type: multipart/mixed\n\n--b\n\nx") == ["multipart/mixed"]
    assert types(b"Content-Type: multipart/mixed; boundary=b\n\nno delimiter") == []


def test_fields_are_unfolded_and_the_first_of_a_name_counts() -> None:
    fields = report_parser.read_fields("A: one\n two\nb :three\na: four\nno colon\n: no name\nE:")
    assert fields == {"a": "one two", "b": "three", "e": ""}


def test_a_header_needs_no_body() -> None:
    assert report_parser.header(b"Subject: Hello") == {"subject": "Hello"}
    assert report_parser.header(b"\nSubject: Hello") == {}
    assert report_parser.header(b"") == {}


@pytest.mark.parametrize(
    "encoding, body, text",
    [
        ("base64", b"R3LDvMOfZQ==", "Grüße"),
        ("Base64 ", b"R3LD\nvMOfZQ==\n", "Grüße"),
        ("base64", b"R", ""),
        ("quoted-printable", b"Gr=C3=BC=C3=9F=\ne", "Grüße"),
        ("8bit", "Grüße".encode(), "Grüße"),
        ("x-unknown", b"caf\xe9", "caf�"),
    ],
)
def test_bodies_are_decoded(encoding: str, body: bytes, text: str) -> None:
    (part,) = report_parser.walk(b"Content-Transfer-Encoding: " + encoding.encode() + b"\n\n" + body)
    assert part.text == text


def test_there_is_a_bound_for_parts_and_for_bytes() -> None:
    assert 0 < len(types(multipart(*[b"\nx"] * 5_000))) <= 100
    (part,) = report_parser.walk(b"\n" + b"x" * 10_000_000)
    assert len(part.body) < 256 * 1024


def test_fields_are_bounded_in_number_and_length() -> None:
    assert len(report_parser.read_fields("\n".join(f"f{number}: x" for number in range(50_000)))) == 1000
    assert len(report_parser.read_fields("a:" + "x" * 1_000_000)["a"]) == 16_000


@given(st.lists(st.text("abc -\n", max_size=30), min_size=1, max_size=5))
def test_the_standard_library_writes_what_is_read(texts: list[str]) -> None:
    message = email.message.EmailMessage(policy=email.policy.SMTP)
    message.make_mixed()
    for text in texts:
        message.add_attachment(text)
    read = [part.text for part in report_parser.walk(message.as_bytes())]
    assert [text.rstrip("\n") for text in read] == [text.rstrip("\n") for text in texts]
