"""The client's login: which mechanism, when, and what it makes of a refusal."""

import base64

import pytest

from postroad.protocol.smtp import authentication, client
from postroad.protocol.smtp.values import Cause, RecipientResult, Reply, Stage

ADA = authentication.Credentials("ada", "s3cret pässword")
PLAIN = base64.b64encode("\0ada\0s3cret pässword".encode()).decode()
USERNAME, PASSWORD = (base64.b64encode(text.encode()).decode() for text in ("ada", "s3cret pässword"))


def written(session: client.Client) -> list[str]:
    return b"".join(iter(session.next_bytes, b"")).decode().splitlines()


def say(session: client.Client, *lines: str) -> None:
    session.receive("".join(line + "\r\n" for line in lines).encode())


def greeted(*extensions: str, starttls: bool = False) -> client.Client:
    session = client.Client("me.example", starttls=starttls, credentials=ADA)
    say(session, "220 hello")
    assert written(session) == ["EHLO me.example"]
    say(session, *(f"250-{line}" for line in ("peer", *extensions)), "250 HELP")
    return session


@pytest.mark.parametrize("offered", ["AUTH PLAIN", "AUTH LOGIN PLAIN CRAM-MD5", "auth login plain"])
def test_plain_is_preferred_and_needs_one_command(offered: str) -> None:
    session = greeted(offered)
    assert written(session) == [f"AUTH PLAIN {PLAIN}"]
    say(session, "235 2.7.0 welcome")
    assert (session.step, session.failure) == (client.IDLE, None)


def test_login_answers_two_challenges() -> None:
    session = greeted("AUTH LOGIN")
    assert written(session) == ["AUTH LOGIN"]
    say(session, "334 VXNlcm5hbWU6")
    assert written(session) == [USERNAME]
    say(session, "334 UGFzc3dvcmQ6")
    assert written(session) == [PASSWORD]
    say(session, "235 2.7.0 welcome")
    assert (session.step, session.failure) == (client.IDLE, None)


def test_a_long_response_waits_for_its_challenge() -> None:
    long = authentication.Credentials("ada", "x" * 400)
    command, response = authentication.client_lines(long, "PLAIN")
    assert command == b"AUTH PLAIN"
    assert base64.b64decode(response) == b"\0ada\0" + b"x" * 400


def test_nothing_secret_is_sent_while_starttls_is_wanted() -> None:
    assert written(greeted("AUTH PLAIN", starttls=True)) == []
    session = greeted("AUTH PLAIN", "STARTTLS", starttls=True)
    assert written(session) == ["STARTTLS"]
    say(session, "220 go on")
    session.secured()
    assert written(session) == ["EHLO me.example"]
    say(session, "250-peer", "250 AUTH PLAIN")
    assert written(session) == [f"AUTH PLAIN {PLAIN}"]


def test_with_implicit_tls_the_handshake_comes_before_the_banner() -> None:
    session = client.Client("me.example", starttls=False, implicit_tls=True, credentials=ADA)
    assert (session.step, session.is_waiting) == (client.HANDSHAKE, False)
    session.secured()
    assert written(session) == []
    say(session, "220 hello")
    assert written(session) == ["EHLO me.example"]


@pytest.mark.parametrize(
    "line, cause",
    [
        ("535 5.7.8 wrong", Cause.CONFIGURATION),
        ("534 5.7.9 too weak", Cause.CONFIGURATION),
        ("504 5.5.4 unknown", Cause.CONFIGURATION),
        ("454 4.7.0 not now", None),
    ],
)
def test_a_refused_login_is_ours_unless_it_is_temporary(line: str, cause: Cause | None) -> None:
    session = greeted("AUTH PLAIN")
    written(session)
    say(session, line)
    code, enhanced, text = line.split(" ", 2)
    assert session.failure == RecipientResult(Stage.AUTH, Reply(int(code), text, enhanced), cause)
    assert session.step is client.CLOSED


@pytest.mark.parametrize("extensions", [(), ("AUTH CRAM-MD5",)])
def test_a_server_without_a_mechanism_for_us_is_a_matter_of_settings(extensions: tuple[str, ...]) -> None:
    session = greeted(*extensions)
    assert written(session) == []
    assert session.failure == RecipientResult(
        Stage.AUTH, cause=Cause.CONFIGURATION, detail="the destination offers neither AUTH PLAIN nor LOGIN"
    )


def test_a_challenge_too_many_ends_the_session() -> None:
    session = greeted("AUTH PLAIN")
    written(session)
    say(session, "334 more")
    assert session.failure is not None
    assert (session.failure.stage, session.failure.cause) == (Stage.AUTH, Cause.PROTOCOL_ERROR)


def test_a_server_that_quotes_the_command_does_not_reveal_the_password() -> None:
    session = greeted("AUTH PLAIN")
    written(session)
    say(session, f"500 5.5.1 unknown: AUTH PLAIN {PLAIN}")
    assert session.failure is not None
    assert session.failure.response_text == "5.5.1 unknown: AUTH PLAIN ***"


@pytest.mark.parametrize(
    "line, shown",
    [
        (f"421 4.7.0 closing after {PLAIN}", "4.7.0 closing after ***"),
        (f"500 line too long: AUTH PLAIN {PLAIN[:12]}", "line too long: AUTH PLAIN ***"),
        (f"535 5.7.8 {PLAIN[8:20]}... is wrong", "5.7.8 ***... is wrong"),
        ("535 5.7.8 ada has not the password s3cret pässword", "5.7.8 ada has not the password ***"),
        (f"AUTH PLAIN {PLAIN}", "the destination sent an invalid reply"),
    ],
)
def test_no_reply_to_a_login_reveals_the_password(line: str, shown: str) -> None:
    session = greeted("AUTH PLAIN")
    written(session)
    say(session, line)
    assert session.failure is not None
    assert (session.failure.stage, session.failure.response_text) == (Stage.AUTH, shown)


def test_a_username_alone_is_no_secret() -> None:
    assert authentication.masked("no user ada", authentication.client_lines(ADA, "LOGIN")) == "no user ada"
