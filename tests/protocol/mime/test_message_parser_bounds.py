"""Messages as large or as twisted as an enemy makes them: read or refused in one pass, in memory that does not grow."""

import tracemalloc

import pytest

from postroad.protocol.mime import message_parser


def same(message: message_parser.Message) -> bytes:
    return message_parser.rewrite(message, drop=frozenset(), add=())


def test_a_header_has_bounds() -> None:
    most = 256 * 1024
    fits = b"A: " + b"\r\n b" * ((most - 5) // 4) + b"\r\n"
    assert most - 4 <= len(fits) <= most
    assert len(message_parser.read(fits + b"\r\nbody").fields) == 1
    with pytest.raises(message_parser.MessageError, match="longer than 262144 octets"):
        message_parser.read(fits + b" bcd\r\n\r\nbody")
    fields = b"A: b\r\n" * 1000
    assert len(message_parser.read(fields + b"\r\n").fields) == 1000
    with pytest.raises(message_parser.MessageError, match="more than 1000 fields"):
        message_parser.read(fields + b"C: d\r\n\r\n")


@pytest.mark.parametrize(
    "begin, part, count, end",
    [
        (b"", b"A: b\r\n", 1_000_000, b"\r\n"),
        (b"A: ", b"x", 100_000_000, b""),
        (b"A:", b" b\r\n", 20_000_000, b""),
    ],
    ids=["fields", "line", "folds"],
)
def test_a_monstrous_header_is_refused_without_being_copied(begin: bytes, part: bytes, count: int, end: bytes) -> None:
    content = begin + part * count + end
    tracemalloc.start()
    try:
        with pytest.raises(message_parser.MessageError, match="the header is longer than 262144 octets"):
            message_parser.read(content)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


# An expression that looked ahead from every octet would take hours for these.
@pytest.mark.parametrize("octets", [b"a", b":", b" ", b"a: b\r\n ", b"ab\r\n", b"a ", b"=?", b"(", b"<", b'"', b","])
@pytest.mark.parametrize("name", [b"Subject: ", b"To: ", b""])
def test_a_hostile_header_costs_no_more_than_its_size(name: bytes, octets: bytes) -> None:
    content = name + b"\r\n ".join([octets * (900 // len(octets))] * 280) + b"\r\n\r\n"
    assert (256 * 1024) - 20_000 < len(content) < 256 * 1024
    try:
        assert same(message_parser.read(content)) == content
    except message_parser.MessageError as refusal:
        only_white_space = octets in {b" ", b"a: b\r\n "}
        assert name == b"" or octets == b"ab\r\n" or only_white_space, refusal  # noqa: PT017 - only these are no fields


@pytest.mark.parametrize("octets", ["ü", "ü ", "a ü ", "ü,", "<ü", "ü <a@example.com>,", "=?utf-8?q?a?= ü ", 'ü\\"'])
@pytest.mark.parametrize("name", ["Subject", "To", "List-Id", "Content-Type"])
def test_a_hostile_header_in_utf_8_grows_by_a_factor_at_most(name: str, octets: str) -> None:
    line = (octets * (900 // len(octets.encode()))).encode()
    content = f"{name}: ".encode() + b"\r\n ".join([line] * 35) + b"\r\n\r\n"
    assert (32 * 1024) - 2_000 < len(content) < 32 * 1024
    rewritten = same(message_parser.read(content))
    assert len(rewritten) < 10 * len(content)
    assert [field.name for field in message_parser.read(rewritten).fields] == [name]
    with pytest.raises(message_parser.MessageError, match="not ASCII may have 32768 octets"):
        message_parser.read(b"X: " + b"\r\n y" * 500 + b"\r\n" + content)


def nested(levels: int, *, seed: str) -> bytes:
    """A multipart in a multipart, and so on; no two boundaries are equal."""
    head, body, tail = [f'Content-Type: multipart/mixed; boundary="{seed}0"\r\n\r\n'], [], []
    for level in range(levels):
        body.append(f'--{seed}{level}\r\nContent-Type: multipart/mixed;\r\n boundary="{seed}{level + 1}"\r\n\r\n')
        tail.append(f"\r\n--{seed}{level}--\r\n")
    return "".join([*head, *body, "text", *tail[::-1]]).encode()


def test_ten_thousand_nested_multiparts_pass_through_untouched() -> None:
    content = nested(10_000, seed="b")
    message = message_parser.read(content)
    assert same(message) == content
    assert message_parser.fingerprint(message) == message_parser.fingerprint(
        message_parser.read(nested(10_000, seed="c"))
    )


@pytest.mark.parametrize(
    "body",
    [
        b"--a\r\n" * 200_000,
        b"--a\r\nContent-Type: multipart/mixed; boundary=a\r\n\r\n" * 50_000,
        b"--a--" * 100 + b"\r\n",
        b"\r\n--" * 200_000,
        b"--a\r\n" + b"Content-Type: multipart/x;\r\n" * 50_000,
        b"--a\r\nContent-Type: multipart/x" + b";\r\n  boundary" * 50_000 + b"\r\n\r\n",
        b"--a",
        b"",
    ],
    ids=["delimiters", "parts", "ends", "dashes", "no end", "parameters", "cut", "empty"],
)
def test_the_fingerprint_of_a_hostile_body_is_found_in_one_pass(body: bytes) -> None:
    message = message_parser.read(b"Content-Type: multipart/mixed; boundary=a\r\n\r\n" + body)
    assert len(message_parser.fingerprint(message)) == 32
