"""Bodies as octets: the encoding that fits, lines that end in CRLF, and the same text again."""

import base64
import binascii
import quopri

import hypothesis
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
