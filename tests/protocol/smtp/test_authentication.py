"""AUTH: what a client sends becomes a username and a password, or a refusal that says why."""

import base64

import hypothesis
import pytest
from hypothesis import strategies

from postroad.protocol.smtp import authentication, server_commands


def encoded(text: str) -> bytes:
    return base64.b64encode(text.encode())


@hypothesis.given(
    username=strategies.text(strategies.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1),
    password=strategies.text(strategies.characters(exclude_characters="\0", exclude_categories=["Cs"])),
)
def test_whatever_is_encoded_comes_out_in_both_mechanisms(username: str, password: str) -> None:
    expected = authentication.Credentials(username, password)
    plain = authentication.Exchange("PLAIN")
    assert plain.answer(encoded(f"\0{username}\0{password}")) == expected
    assert authentication.Exchange("PLAIN").answer(encoded(f"{username}\0{username}\0{password}")) == expected
    login = authentication.Exchange("LOGIN")
    assert login.challenge().text.encode() == encoded("Username:")
    assert login.answer(encoded(username)) is None
    assert login.challenge().text.encode() == encoded("Password:")
    assert login.answer(encoded(password) or b"=") == expected


@pytest.mark.parametrize(
    "line, code",
    [
        (b"*", 501),
        (b"=", 501),
        (b"not base64", 501),
        (b"A", 501),
        (b"/w==", 501),
        (b"\xff\xfe\xff\xfe", 501),
        (encoded("jo\0secret"), 501),
        (encoded("\0jo\0secret\0more"), 501),
        (encoded("boss\0jo\0secret"), 535),
    ],
)
def test_a_response_that_is_none_is_refused(line: bytes, code: int) -> None:
    with pytest.raises(server_commands.CommandError) as refused:
        authentication.Exchange("PLAIN").answer(line)
    assert refused.value.reply.code == code


def test_an_unknown_mechanism_is_refused() -> None:
    with pytest.raises(server_commands.CommandError, match="PLAIN or LOGIN"):
        authentication.Exchange("CRAM-MD5")
