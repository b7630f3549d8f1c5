"""The `Authorization` field: what it says, in every way of writing it, and what is refused without being quoted."""

import base64
import contextlib

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
