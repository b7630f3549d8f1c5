"""Bodies as octets: the encoding that fits, lines that end in CRLF, and the same text again."""

import base64
import binascii
import quopri
import re

import hypothesis
import jsonschema_rs
import pytest
from hypothesis import strategies as st

from postroad.protocol.mime import transfer_encoding

TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=500)
LINES = st.lists(st.text("ab =.\t-é漢\x0b\x85\u2028", max_size=200), max_size=10).flatmap(
    lambda lines: st.lists(st.sampled_from(["\n", "\r\n", "\r"]), min_size=len(lines), max_size=len(lines)).map(
        lambda ends: "".join(line + end for line, end in zip(lines, ends, strict=True))
    )
)


def decode(encoding: str, body: bytes) -> str:
    if encoding == "quoted-printable":
        body = quopri.decodestring(body)
    elif encoding == "base64":
        body = base64.b64decode(body, validate=False)
    return body.decode()


def with_crlf(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\n", "\r\n")


@hypothesis.given(TEXT | LINES)
@hypothesis.example("é\n" + "x" * 74 + " \n")
@hypothesis.example("é\n" + "x" * 74 + "\t\n")
@hypothesis.example("é\n" + "x" * 71 + "é \n")
def test_any_text_comes_back_with_every_line_end_made_crlf(text: str) -> None:
    encoding, body = transfer_encoding.encode(text)
    assert decode(encoding, body) == with_crlf(text)
    assert body.isascii()
    lines = body.split(b"\r\n")
    assert not any(b"\r" in line or b"\n" in line for line in lines)
    assert max(map(len, lines)) <= (998 if encoding == "7bit" else 76)
    if encoding != "7bit":
        assert not any(line.endswith((b" ", b"\t")) for line in lines)


@pytest.mark.parametrize(
    "text, encoding",
    [
        ("", "7bit"),
        ("Hello\n", "7bit"),
        ("x" * 998, "7bit"),
        ("x" * 998 + "\n" + "y" * 998 + "\r\n", "7bit"),
        ("x" * 999, "quoted-printable"),
        ("a\n" + "x" * 999 + "\nb", "quoted-printable"),
        ("a\n" * 600 + "x" * 999, "quoted-printable"),
        ("=" * 999, "quoted-printable"),
        ("Viele Grüße aus dem schönen Bonn, bis bald", "quoted-printable"),
        ("日本語", "base64"),
    ],
)
def test_the_encoding_follows_from_the_text(text: str, encoding: str) -> None:
    assert transfer_encoding.encode(text)[0] == encoding


@hypothesis.given((TEXT | LINES).filter(lambda text: not text.isascii()))
def test_what_is_not_ascii_takes_the_smaller_encoding(text: str) -> None:
    octets = with_crlf(text).encode()
    quoted = binascii.b2a_qp(octets.replace(b"\r\n", b"\n"), istext=True).replace(b"\n", b"\r\n")
    encoding, body = transfer_encoding.encode(text)
    assert len(body) == min(len(quoted), transfer_encoding.length_as_base64(len(octets)))
    assert encoding in {"quoted-printable", "base64"}


@hypothesis.given(
    st.text("ab =.\t\r\n\0", max_size=400) | st.binary(max_size=400).map(lambda data: data.decode("latin-1"))
)
@hypothesis.example("x" * 74 + " ")
@hypothesis.example("x" * 998 + "\r\n")
def test_a_text_file_comes_back_byte_for_byte(text: str) -> None:
    octets = text.encode("latin-1")
    encoding, body = transfer_encoding.encode_text_file(octets)
    assert transfer_encoding.decode(body, encoding, repair=False) == octets
    assert (encoding == "base64") == (not octets.isascii())
    lines = body.split(b"\r\n")
    assert not any(b"\r" in line or b"\n" in line or b"\0" in line for line in lines)
    assert max(map(len, lines)) <= (998 if encoding == "7bit" else 76)


@pytest.mark.parametrize(
    "octets, encoding",
    [
        (b"", "7bit"),
        (b"a,b\r\n1,2\r\n", "7bit"),
        (b"x" * 998, "7bit"),
        (b"x" * 999, "quoted-printable"),
        (b"a,b\n1,2\n", "quoted-printable"),
        (b"a\rb", "quoted-printable"),
        (b"a\0b", "quoted-printable"),
        ("é".encode(), "base64"),
    ],
)
def test_the_encoding_of_a_text_file_follows_from_its_bytes(octets: bytes, encoding: str) -> None:
    assert transfer_encoding.encode_text_file(octets)[0] == encoding


@pytest.mark.parametrize("text", ["\0", "a\0b", "é\0", "\ud800", "a\udfffb"])
def test_nul_and_half_surrogate_pairs_are_refused(text: str) -> None:
    with pytest.raises(transfer_encoding.BodyError):
        transfer_encoding.encode(text)


# Base64.


STDLIB = jsonschema_rs.validator_for({"pattern": transfer_encoding.BASE64_PATTERN})


@hypothesis.given(st.binary())
def test_what_the_standard_library_encodes_is_decoded(octets: bytes) -> None:
    assert transfer_encoding.decode_base64(base64.b64encode(octets).decode()) == octets
    assert transfer_encoding.decode_base64(base64.encodebytes(octets).decode()) == octets
    assert transfer_encoding.decode_base64(transfer_encoding.encode_base64(octets).decode()) == octets


@pytest.mark.parametrize(
    "text, octets", [("", b""), ("\r\n", b""), ("QQ==", b"A"), ("Q\nQ=\r\n=", b"A"), ("QUJD\n", b"ABC")]
)
def test_line_breaks_may_stand_anywhere(text: str, octets: bytes) -> None:
    assert transfer_encoding.decode_base64(text) == octets


@pytest.mark.parametrize(
    "text, reason",
    [
        ("QQ", "must end in 2 '=' here, not 0"),
        ("QQ=", "must end in 2 '=' here, not 1"),
        ("QQ===", "must end in 2 '=' here, not 3"),
        ("QUI", "must end in 1 '=' here, not 0"),
        ("QUJD=", "must end in 0 '=' here, not 1"),
        ("QUJD====", "must end in 0 '=' here, not 4"),
        ("Q", "one character too many or is truncated"),
        ("QUJDR", "one character too many or is truncated"),
        ("Q===", "one character too many or is truncated"),
        ("=", "must end in 0 '=' here, not 1"),
        ("====", "must end in 0 '=' here, not 4"),
        ("QQ==QQ==", "only at the end"),
        ("QQ==Q", "only at the end"),
        ("Q=Q=", "only at the end"),
        ("QQ ==", "' ' at position 2"),
        (" QQ==", "' ' at position 0"),
        ("QQ==\t", "'\\t' at position 4"),
        ("QQ-_", "'-' at position 2 is not a character of base64; the URL-safe alphabet is not accepted"),
        ("QQ_=", "URL-safe"),
        ("QQé=", "'é' at position 2"),
        ("QQ\0=", "'\\x00' at position 2"),
        ("QQ\u2028=", "'\\u2028' at position 2"),
        ("ＱＱ==", "at position 0"),
        ("data:image/png;base64,QQ==", "':' at position 4"),
        ("QQ==\x0b", "'\\x0b' at position 4"),
        ("\ud800", "at position 0"),
    ],
)
def test_everything_else_is_refused_with_its_reason(text: str, reason: str) -> None:
    with pytest.raises(transfer_encoding.Base64Error) as caught:
        transfer_encoding.decode_base64(text)
    assert reason in str(caught.value)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    "size", [0, 1, 2, 3, 56, 57, 58, 114, 57 * 511, 57 * 512, 57 * 512 + 1, 57 * 1024 - 1, 100_000]
)
def test_lines_have_76_characters_with_crlf_between_them(size: int) -> None:
    octets = bytes(index % 251 for index in range(size))
    encoded = transfer_encoding.encode_base64(octets)
    assert encoded == base64.encodebytes(octets).rstrip(b"\n").replace(b"\n", b"\r\n")
    assert len(encoded) == transfer_encoding.length_as_base64(size)


PIECES = st.lists(
    st.sampled_from(["QUJD", "QUI=", "QQ==", "QR", "Q", "=", "==", "\r\n", "\n", " ", "-", "é"]), max_size=6
)


@hypothesis.given(PIECES.map("".join) | st.from_regex(transfer_encoding.BASE64_PATTERN[:-1] + r"\Z"))
def test_the_pattern_says_the_same_as_the_decoder(text: str) -> None:
    try:
        transfer_encoding.decode_base64(text)
        accepted = True
    except transfer_encoding.Base64Error:
        accepted = False
    assert STDLIB.is_valid(text) == accepted
    assert (re.search(transfer_encoding.BASE64_PATTERN[:-1] + r"\Z", text) is not None) == accepted


@pytest.mark.parametrize(
    "outside, base64_of_it",
    [
        (b"aGVsbG8=", b"aGVsbG8="),
        (b"aGVs\r\nbG8=\r\n", b"aGVs\r\nbG8=\r\n"),
        (b"aGVsbG8=aGVsbG8=", b"aGVsbG8="),
        (b"aGVs\r\nbG8=\r\naGVs", b"aGVsbG8="),
        (b"aGU==aGVs", b"aGU="),
        (b"aA==aGVs", b"aA=="),
        (b"=aGVs=bG8=h", b"aGVsbG8="),
        (b"aA=Vs", b"aAVs"),
        (b"=AAAA=A", b"AAAAA"),
        (b"", b""),
    ],
)
def test_base64_of_others_ends_with_its_padding(outside: bytes, base64_of_it: bytes) -> None:
    assert transfer_encoding.base64_up_to_padding(outside) == base64_of_it
