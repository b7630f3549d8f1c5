"""Base64: what is decoded is exactly base64, and what is encoded has lines of 76."""

import base64
import re

import hypothesis
import jsonschema_rs
import pytest
from hypothesis import strategies as st

from postroad.protocol.mime import transfer_encoding

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
