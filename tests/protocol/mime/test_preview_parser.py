"""Any message is taken apart for people: the same leaves as the standard library finds, whatever the encoding."""

import email
import email.encoders
import email.generator
import email.message
import email.policy
import io
import tracemalloc
from email.mime.base import MIMEBase
from email.mime.multipart import MIMEMultipart

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroad.protocol.mime import header_fields, preview_parser

MULTIPART = b"Content-Type: multipart/mixed; boundary=b\n\n"


def bodies(content: bytes) -> list[bytes]:
    reading = preview_parser.read(content)
    return [reading.body(part) for part in reading.parts]


def types(content: bytes) -> list[tuple[str, str]]:
    return [(part.path, part.content_type) for part in preview_parser.read(content).parts]


def test_a_plain_message_is_its_only_part() -> None:
    reading = preview_parser.read(b"Subject: Hello\r\nTo: a@b\r\n\r\nLine one\r\nline two\r\n")
    assert reading.headers == (("Subject", "Hello"), ("To", "a@b"))
    (part,) = reading.parts
    assert (part.index, part.path, part.content_type, part.charset) == (0, "1", "text/plain", "")
    assert (part.filename, part.content_id, part.disposition, part.size) == (None, "", "", 20)
    assert reading.body(part) == b"Line one\r\nline two\r\n"
    assert not reading.truncated


def test_headers_are_unfolded_and_decoded_for_people() -> None:
    reading = preview_parser.read(
        b"From: =?utf-8?q?J=C3=BCrgen?= <j@x>\r\nSubject: one\r\n\ttwo =?utf-8?b?wqA=?=\r\n"
        b"no field\r\nReceived : x\r\nReceived:y\r\nX: \xff\r\nEvil: =?utf-8?q?a=0D=0AB:=00=E2=80=AE?=\r\n\r\n"
    )
    assert reading.headers == (
        ("From", "Jürgen <j@x>"),
        ("Subject", "one two \u00a0"),
        ("Received", "x"),
        ("Received", "y"),
        ("X", "\ufffd"),
        ("Evil", "a B:\ufffd\ufffd"),
    )


@pytest.mark.parametrize("end", [b"\n", b"\r\n"], ids=["lf", "crlf"])
def test_parts_come_in_order_with_their_paths_and_messages_inside_stay_closed(end: bytes) -> None:
    content = (
        b'Content-Type: multipart/mixed; boundary="b"\n\npreamble\n--b \n'
        b"Content-Type: multipart/alternative; boundary=bb\n\n--bb\n\nplain\n"
        b"--bb\nContent-Type: TEXT/HTML; charset=X\n\n<b>\n--bb--\nepilogue\n--b\n"
        b"Content-Type: message/rfc822\n\nContent-Type: multipart/mixed; boundary=c\n\n--c\n\ninner\n--c--\n--b\n"
        b"Content-Type: multipart/digest; boundary=d\n\n--d\n\nSubject: x\n--d--\n--b--\nend"
    ).replace(b"\n", end)
    assert types(content) == [
        ("1.1", "text/plain"),
        ("1.2", "text/html"),
        ("2", "message/rfc822"),
        ("3.1", "message/rfc822"),
    ]
    assert bodies(content)[:2] == [b"plain", b"<b>"]
    assert bodies(content)[2].endswith(b"--c--")
    assert [part.index for part in preview_parser.read(content).parts] == [0, 1, 2, 3]


def test_an_outer_delimiter_ends_what_is_inside() -> None:
    inner = b"--b\nContent-Type: multipart/mixed; boundary=c\n\n--c\n\none\n"
    assert bodies(MULTIPART + inner + b"--b\n\ntwo\n--c\n--b--") == [b"one", b"two\n--c"]


def test_a_boundary_that_begins_like_another_is_another() -> None:
    inner = b"--b\nContent-Type: multipart/mixed; boundary=bb\n\n--bb\n\none\n--bbb\n--bb--\n"
    assert bodies(MULTIPART + inner + b"--b\n\ntwo --b\n --b\n--b-\n--b--") == [b"one\n--bbb", b"two --b\n --b\n--b-"]


@pytest.mark.parametrize(
    "content, found",
    [
        (b"", [b""]),
        (b"\n", [b""]),
        (b"no header", [b""]),
        (b"\nbody", [b"body"]),
        (MULTIPART, [b""]),
        (MULTIPART + b"nothing", [b"nothing"]),
        (MULTIPART + b"--b", [b""]),
        (MULTIPART + b"--b--", [b""]),
        (MULTIPART + b"before\n--b--\nafter", [b"before"]),
        (MULTIPART + b"--b\n--b\n--b--", [b"", b""]),
        (MULTIPART + b"--b\nA: b\n--b\n\nx", [b"", b"x"]),
        (MULTIPART + b"--b\n\n\n--b\n\nnever closed", [b"", b"never closed"]),
        (b"Content-Type: multipart/mixed\n\n--b\n\nx", [b"--b\n\nx"]),
        (MULTIPART + b"--b\n" + MULTIPART + b"--b\n\nx\n--b--", [b"", b"x"]),
    ],
)
def test_what_is_malformed_is_read_as_far_as_it_makes_sense(content: bytes, found: list[bytes]) -> None:
    assert bodies(content) == found


@pytest.mark.parametrize("kind", ["", "text", "a/b/c", "/", "text/", "text/html x", "mülti/x"])
def test_what_is_no_type_is_plain_text(kind: str) -> None:
    assert types(f"Content-Type: {kind}\n\nx".encode()) == [("1", "text/plain")]


@pytest.mark.parametrize(
    "encoding, body, decoded",
    [
        ("base64", b"aGVsbG8=", b"hello"),
        ("BASE64 ", b"aGVs\r\nbG8", b"hello"),
        ("base64", b"aGVsbG8=h", b"hello"),
        ("base64", b"aGVsb", b"hel"),
        ("base64", b"*aG!Vs\xff", b"hel"),
        ("base64", b"=", b""),
        ("base64", b"A", b""),
        ("base64", b"=AAAA=A", b"\0\0\0"),
        ("quoted-printable", b"h=C3=BC=\r\nx=", b"h\xc3\xbcx"),
        ("quoted-printable", b"=zz=4", b"=zz=4"),
        ("8bit", b"\xff\0", b"\xff\0"),
        ("x-unknown", b"aGVs", b"aGVs"),
        ("", b"aGVs", b"aGVs"),
    ],
)
def test_a_body_is_decoded_as_far_as_it_can_be(encoding: str, body: bytes, decoded: bytes) -> None:
    reading = preview_parser.read(b"Content-Transfer-Encoding: " + encoding.encode() + b"\r\n\r\n" + body)
    assert reading.body(reading.parts[0]) == decoded
    assert reading.parts[0].size == len(decoded)


def test_names_of_files_and_parts_are_harmless() -> None:
    fields = (
        b"Content-Type: image/png; name=other.png\nContent-ID: < ../../routes.js\x00 >\n"
        b"Content-Disposition: Form-Data; filename*=utf-8''..%2F..%2Fetc%2Fa%E2%80%AEgnp.exe\n\nx"
    )
    (part,) = preview_parser.read(fields).parts
    assert (part.filename, part.content_id, part.disposition) == ("agnp.exe", "../../routes.js\ufffd", "attachment")
    (part,) = preview_parser.read(
        b'Content-Type: image/png; name="C:\\a\\b.png"\nContent-Disposition: INLINE\n\n'
    ).parts
    assert (part.filename, part.disposition) == ("b.png", "inline")


@pytest.mark.parametrize("charset", [*sorted(header_fields.CHARSETS), "", "x-unknown", "utf-7", "idna", "zip", "a\0b"])
def test_a_text_is_decoded_whatever_its_octets(charset: str) -> None:
    octets = bytes(range(256)) + b"\x1b$B\x21\x21\x1b(B~{\xed\xa0\x80\x83\x36\xd8\x30"
    reading = preview_parser.read(f"Content-Type: text/plain; charset={charset}\r\n\r\n".encode() + octets)
    text, cut = reading.text(reading.parts[0], max_length=1000)
    assert text.encode()
    assert not cut


def test_a_text_is_decoded_by_its_charset_and_cut() -> None:
    reading = preview_parser.read(b'Content-Type: text/plain; charset="ISO-8859-1"\n\n\xfcber\r\nalles')
    assert reading.text(reading.parts[0], max_length=10) == ("über\nalles", False)
    assert reading.text(reading.parts[0], max_length=9) == ("über\nalle", True)
    assert reading.text(reading.parts[0], max_length=2) == ("üb", True)


def leaves(message: email.message.Message) -> list[tuple[str, object, str | None]]:
    """What the reference parser finds; it opens messages inside, and we do not."""
    found = []
    waiting = [message]
    while waiting:
        part = waiting.pop()
        inner = part.get_payload()
        if isinstance(inner, list) and part.get_content_maintype() == "multipart":
            waiting += [one for one in inner if isinstance(one, email.message.Message)][::-1]
        else:
            found.append((part.get_content_type(), part.get_payload(decode=True), part.get_filename()))
    return found


LEAVES = st.builds(
    lambda kind, body, encoding, name: (kind, body, encoding, name),
    st.sampled_from(["text/plain", "text/html", "image/png", "application/x"]),
    st.binary(max_size=60) | st.sampled_from([b"--b", b"\n--b\n", b"-" * 40, b"\r\n\r\n", b"a\nb"]),
    st.sampled_from(["base64", "quoted-printable"]),
    st.none() | st.text("abc. ü", min_size=1, max_size=20).map(lambda name: f"x{name}x"),
)
TREES = st.recursive(LEAVES, lambda inner: st.lists(inner, min_size=1, max_size=4), max_leaves=12)


def built(tree: object, number: list[int]) -> email.message.Message:
    if isinstance(tree, tuple):
        kind, body, encoding, name = tree
        leaf = MIMEBase(*kind.split("/"))
        leaf.set_payload(body)
        if encoding == "base64":
            email.encoders.encode_base64(leaf)
        else:
            email.encoders.encode_quopri(leaf)
        if name is not None:
            leaf.add_header("Content-Disposition", "attachment", filename=("utf-8", "", name))
        return leaf
    assert isinstance(tree, list)
    number[0] += 1
    # Neither base64 nor quoted-printable can contain it.
    outer = MIMEMultipart("mixed", boundary="=" + "b" * number[0])
    for inner in tree:
        outer.attach(built(inner, number))
    return outer


@given(TREES, st.sampled_from([email.policy.compat32, email.policy.compat32.clone(linesep="\r\n")]))
def test_the_standard_library_finds_the_same_leaves(tree: object, policy: email.policy.Policy) -> None:
    written = io.BytesIO()
    email.generator.BytesGenerator(written, policy=policy).flatten(built(tree, [0]))
    content = written.getvalue()
    reading = preview_parser.read(content)
    expected = leaves(email.message_from_bytes(content, policy=email.policy.compat32))
    assert [(part.content_type, reading.body(part)) for part in reading.parts] == [one[:2] for one in expected]
    assert [part.filename for part in reading.parts] == [one[2] for one in expected]
    assert not reading.truncated


PIECES = [
    b"--b",
    b"--",
    b"\r\n",
    b"\n",
    b"\n\n",
    b"a: b",
    b" ",
    b"Content-Type: multipart/mixed; boundary=b",
    b"\r",
    b"x",
]


@given(st.binary(max_size=300) | st.lists(st.sampled_from(PIECES), max_size=40).map(b"".join))
def test_no_octets_make_it_fail(content: bytes) -> None:
    for given_content in (content, MULTIPART + content):
        reading = preview_parser.read(given_content)
        assert reading.parts
        for part in reading.parts:
            assert 0 <= part.begin <= part.end <= len(given_content)
            assert len(reading.body(part)) == part.size
            reading.text(part, max_length=10)[0].encode()
        ends = [0, *(part.end for part in reading.parts)]
        assert all(part.begin >= end for part, end in zip(reading.parts, ends, strict=False))


# Messages as large or as twisted as an enemy makes them.


CRLF_MULTIPART = b"Content-Type: multipart/mixed; boundary=a\r\n\r\n"
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
    reading = preview_parser.read(CRLF_MULTIPART + parts + b"--a\r\n\r\nlast\r\n" * more + b"--a--\r\n")
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
    reading = preview_parser.read(CRLF_MULTIPART + endless + b"--a\r\n\r\nnext\r\n--a--")
    assert [reading.body(part) for part in reading.parts] == [b"", b"next"]
    assert reading.truncated


# Anything that is not linear takes minutes for these, and recursion ends in an error.
@pytest.mark.parametrize(
    "content, truncated",
    [
        (nested(10_000), True),
        (CRLF_MULTIPART + b"--a\r\n\r\nx\r\n" * 1_000_000, True),
        (CRLF_MULTIPART + b"--a\r\n" * 1_000_000, True),
        (CRLF_MULTIPART + INNER * 100_000, True),
        (b"A: b\r\n" * 1_000_000, True),
        (b"A:" + b"\r\n b" * 1_000_000, True),
        (CRLF_MULTIPART + b"-" * 10 * 1024 * 1024, False),
        (CRLF_MULTIPART + b"--\n" * 3_500_000, True),
        (CRLF_MULTIPART + b"--aa\r\n" * 1_000_000, True),
        (CRLF_MULTIPART + b"--a" * 3_000_000, False),
        (CRLF_MULTIPART + (b"--a\r\n" + b"x:y\r\n" * 3_000 + b"\r\nz\r\n") * 500, True),
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
    content = CRLF_MULTIPART + (b"--a\r\nContent-Transfer-Encoding: base64\r\n\r\n" + b"QUJD" * 500_000 + b"\r\n") * 10
    tracemalloc.start()
    try:
        assert [part.size for part in preview_parser.read(content).parts] == [1_500_000] * 10
        assert tracemalloc.get_traced_memory()[1] < len(content)
    finally:
        tracemalloc.stop()
