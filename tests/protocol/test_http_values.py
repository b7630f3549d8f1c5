"""The `Authorization` field: what it says, in every way of writing it, and what is refused without being quoted."""

import base64
import contextlib
from urllib import parse

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroad.protocol.text import http_values


def basic(text: str | bytes) -> str:
    octets = text.encode() if isinstance(text, str) else text
    return "Basic " + base64.b64encode(octets).decode()


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
def test_a_bearer_token_is_what_follows_the_scheme_in_any_case(scheme: str) -> None:
    assert http_values.parse_authorization(f"{scheme} abc.def") == http_values.Bearer("abc.def")


def test_white_space_around_the_value_does_not_matter() -> None:
    assert http_values.parse_authorization(" Bearer   abc \t") == http_values.Bearer("abc")


@pytest.mark.parametrize(
    "text, username, password",
    [
        ("user:secret", "user", "secret"),
        ("user:with:colons:", "user", "with:colons:"),
        ("user:", "user", ""),
        (":secret", "", "secret"),
        ("üser:pässwörd", "üser", "pässwörd"),
    ],
)
def test_basic_is_a_name_and_a_password_split_at_the_first_colon(text: str, username: str, password: str) -> None:
    assert http_values.parse_authorization(basic(text)) == http_values.Basic(username, password)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "Bearer",
        "Bearer ",
        "Bearer a b",
        "Bearer a\tb",
        "Bearer \xff",
        "Bearer\xa0abc",
        "Basic",
        "Basic !!!!",
        "Basic YTp",
        "Basic YTpi\n",
        "abc.def",
        "Digest username=x",
        basic("no colon"),
        basic(b"\xff:\xff"),
        "Bearer " + "a" * 4096,
    ],
)
def test_everything_else_is_refused(text: str) -> None:
    with pytest.raises(http_values.AuthorizationError):
        http_values.parse_authorization(text)


@given(text=st.text(max_size=60) | st.text(max_size=60).map(lambda rest: "Basic " + rest))
def test_no_text_does_anything_but_parse_or_be_refused(text: str) -> None:
    with contextlib.suppress(http_values.AuthorizationError):
        http_values.parse_authorization(text)


@pytest.mark.parametrize(
    "text", ["s3cret", "s3cret x", "Basic s3cret", "Digest s3cret", "Bearer a s3cret", basic("s3cret")]
)
def test_a_refusal_does_not_quote_what_was_sent(text: str) -> None:
    with pytest.raises(http_values.AuthorizationError) as refusal:
        http_values.parse_authorization(text)
    assert "s3cret" not in str(refusal.value)


def test_secrets_do_not_show_in_a_repr() -> None:
    assert "s3cret" not in repr(http_values.parse_authorization(basic("user:s3cret")))
    assert "s3cret" not in repr(http_values.parse_authorization("Bearer s3cret"))


def test_every_way_of_writing_one_credential_has_one_secret() -> None:
    written = {http_values.parse_authorization(text).secret for text in ("Bearer abc", "bearer  abc", "BEARER abc ")}
    assert len(written) == 1
    assert http_values.parse_authorization(basic("a:b")).secret != http_values.Bearer("a:b").secret


# Names and values are read as everybody else does, but for what is not percent-encoded UTF-8.


TEXT = st.text(st.characters(codec="utf-8"))


def read(text: bytes) -> list[tuple[str, str]]:
    return http_values.read_form(text, limit=128)


@hypothesis.given(st.lists(st.tuples(TEXT, TEXT), max_size=20))
def test_what_browsers_write_is_read(pairs: list[tuple[str, str]]) -> None:
    assert read(parse.urlencode(pairs).encode()) == pairs


@hypothesis.given(st.text("a=&+%4e1fF;_ \t\0", max_size=40))
def test_what_is_read_is_what_the_standard_library_reads(text: str) -> None:
    try:
        pairs = read(text.encode())
    except http_values.FormError:
        assert "%" in text
        return
    assert pairs == parse.parse_qsl(text, keep_blank_values=True, errors="strict")


@pytest.mark.parametrize("before", range(4))
@pytest.mark.parametrize("unit", ["%C3%A4", "a%41", "=", "%3D=", "%25", "+%2B", "%0D%0A", "%E2%82%AC"])
def test_a_long_value_is_read_however_its_pieces_fall(unit: str, before: int) -> None:
    count = 2 * (64 * 1024) // len(unit)
    ((name, value),) = read(f"n=%6E{'x' * before}{unit * count}".encode())
    assert (name, value) == ("n", "n" + "x" * before + parse.unquote_plus(unit) * count)


@pytest.mark.parametrize(
    "text",
    [
        b"%",
        b"a=%",
        b"a=%4",
        b"a=%zz",
        b"a=%%41",
        b"a=%=41",
        b"a=%3%44",
        b"a=%ff",
        b"a=%C3",
        b"a=%ED%A0%80",
        b"a=%\n",
        b"a=%\r%41\n",
        b"a=1\nb",
        "ä=1".encode(),
        b"a=" + b"%41" * (64 * 1024) + b"%4",
        b"a=" + b"x" * ((64 * 1024) - 1) + b"%",
    ],
)
def test_what_is_not_percent_encoded_is_refused(text: bytes) -> None:
    with pytest.raises(http_values.FormError):
        read(text)


def test_there_are_no_more_fields_than_may_be() -> None:
    assert len(http_values.read_form(b"a&b&c", limit=3)) == 3
    with pytest.raises(http_values.FormError):
        http_values.read_form(b"a&b&c", limit=2)
