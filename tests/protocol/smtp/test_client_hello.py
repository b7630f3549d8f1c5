"""How a session begins and ends: banner, EHLO or HELO, STARTTLS, QUIT."""

import pytest

from postroad.protocol.smtp import authentication, client, values
from postroad.protocol.smtp.values import Cause, RecipientResult, Reply, Stage


def written(session: client.Client) -> bytes:
    return b"".join(iter(session.next_bytes, b""))


def begun(*, starttls: bool = False) -> client.Client:
    session = client.Client("me.example", starttls=starttls)
    assert written(session) == b""
    session.receive(b"220-hello\r\n220 there\r\n")
    assert written(session) == b"EHLO me.example\r\n"
    return session


def test_extensions_are_keywords_with_their_parameters() -> None:
    session = begun()
    session.receive(b"250-peer PIPELINING\r\n250-Size 1000 \r\n250-auth PLAIN LOGIN\r\n250-\r\n250 8bitmime\r\n")
    assert session.extensions == {"SIZE": "1000", "AUTH": "PLAIN LOGIN", "8BITMIME": ""}


@pytest.mark.parametrize("refusal", [b"500 what\r\n", b"502 5.5.1 no\r\n", b"451 4.3.0 not now\r\n"])
def test_a_server_without_ehlo_gets_helo(refusal: bytes) -> None:
    session = begun(starttls=True)
    session.receive(refusal)
    assert written(session) == b"HELO me.example\r\n"
    session.receive(b"250 peer\r\n")
    assert session.step is client.IDLE
    assert session.extensions == {}


@pytest.mark.parametrize("line", ["554 5.7.1 go away", "450 4.7.1 not now", "421 4.3.2 not now"])
def test_a_refusing_banner_is_the_failure(line: str) -> None:
    session = client.Client("me.example", starttls=False)
    session.receive(line.encode() + b"\r\n")
    code, enhanced, text = line.split(" ", 2)
    assert session.failure == RecipientResult(Stage.BANNER, Reply(int(code), text, enhanced))
    assert session.step is client.CLOSED
    assert written(session) == b""


@pytest.mark.parametrize("lines", [b"550 no\r\n550 no\r\n", b"421 no\r\n"])
def test_a_refused_hello_is_the_failure(lines: bytes) -> None:
    session = begun()
    for line in lines.splitlines(keepends=True):
        session.receive(line)
        written(session)
    assert session.failure is not None
    assert session.failure.stage is Stage.HELLO
    assert session.failure.reply is not None
    assert session.step is client.CLOSED


def test_a_server_that_answers_before_it_is_asked_is_not_believed() -> None:
    session = client.Client("me.example", starttls=True)
    session.receive(b"220 hello\r\n250-peer\r\n250 STARTTLS\r\n220 go on\r\n")
    assert session.failure == RecipientResult(
        Stage.HELLO, cause=Cause.PROTOCOL_ERROR, detail="the destination sent an unexpected reply"
    )
    assert session.step is client.CLOSED


@pytest.mark.parametrize("data", [b"", b"220 hello\r\n"])
def test_a_loss_is_a_failure_where_it_happens(data: bytes) -> None:
    session = client.Client("me.example", starttls=False)
    session.receive(data)
    session.fail(Cause.CONNECTION_LOST, "gone")
    assert session.failure == RecipientResult(
        Stage.HELLO if data else Stage.BANNER, cause=Cause.CONNECTION_LOST, detail="gone"
    )


def test_starttls_is_used_when_it_is_wanted_and_offered_and_hello_is_said_again() -> None:
    session = begun(starttls=True)
    session.receive(b"250-peer\r\n250-STARTTLS\r\n250 SIZE 10\r\n")
    assert written(session) == b"STARTTLS\r\n"
    session.receive(b"220 go on\r\n")
    assert session.step is client.HANDSHAKE
    session.secured()
    assert session.extensions == {}
    assert written(session) == b"EHLO me.example\r\n"
    session.receive(b"250-peer\r\n250 STARTTLS\r\n")
    assert session.step is client.IDLE


@pytest.mark.parametrize("starttls, offered", [(False, b"STARTTLS"), (True, b"HELP")])
def test_starttls_is_left_alone_otherwise(starttls: bool, offered: bytes) -> None:  # noqa: FBT001 - a table
    session = begun(starttls=starttls)
    session.receive(b"250-peer\r\n250 " + offered + b"\r\n")
    assert session.step is client.IDLE


@pytest.mark.parametrize("line", [b"454 4.7.0 not now\r\n", b"554 no\r\n", b"421 bye\r\n"])
def test_a_refused_starttls_is_the_failure(line: bytes) -> None:
    session = begun(starttls=True)
    session.receive(b"250-peer\r\n250 STARTTLS\r\n")
    assert written(session) == b"STARTTLS\r\n"
    session.receive(line)
    assert session.failure is not None
    assert (session.failure.stage, session.step) == (Stage.STARTTLS, client.CLOSED)


@pytest.mark.parametrize("injected", [b"250 PIPELINING\r\n", b"2", b"\x16\x03"])
def test_plain_text_behind_the_reply_to_starttls_is_refused(injected: bytes) -> None:
    session = begun(starttls=True)
    session.receive(b"250-peer\r\n250 STARTTLS\r\n")
    assert written(session) == b"STARTTLS\r\n"
    session.receive(b"220 go on\r\n" + injected)
    assert session.failure is not None
    assert (session.failure.stage, session.step) == (Stage.STARTTLS, client.CLOSED)


@pytest.mark.parametrize("line", [b"221 bye\r\n", b"500 what\r\n", b"421 bye\r\n"])
def test_quit_ends_the_session_whatever_the_answer(line: bytes) -> None:
    session = begun()
    session.receive(b"250 peer\r\n")
    session.quit()
    assert written(session) == b"QUIT\r\n"
    assert session.is_waiting
    session.receive(line)
    assert session.step is client.CLOSED


@pytest.mark.parametrize("name", ["", "a b", "a\r\nMAIL", "é.example"])
def test_a_name_that_is_no_word_is_a_mistake_of_ours(name: str) -> None:
    with pytest.raises(ValueError, match="EHLO"):
        client.Client(name, starttls=False)


# What is kept of a session for people.


CONTENT = b"Subject: secret\r\n\r\nnobody reads this\r\n"


def transaction(*recipients: str) -> values.MailTransaction:
    return values.MailTransaction("a@example.com", recipients or ("b@example.org",), (CONTENT,))


def say(session: client.Client, *lines: bytes) -> None:
    b"".join(iter(session.next_bytes, b""))
    session.receive(b"".join(line + b"\r\n" for line in lines))


def ready(*extensions: bytes) -> client.Client:
    session = client.Client("me.example", starttls=False)
    say(session, b"220 mx.example.org ESMTP")
    say(session, b"250-mx.example.org", *(b"250-" + one for one in extensions), b"250 HELP")
    return session


def test_commands_and_replies_are_in_their_order_with_the_beginning_of_the_session() -> None:
    session = ready(b"PIPELINING")
    session.begin(transaction())
    say(session, b"250 ok", b"550 5.1.1 no such user", b"503 no recipients")
    assert session.conversation.text().splitlines() == [
        "S: 220 mx.example.org ESMTP",
        "C: EHLO me.example",
        "S: 250-mx.example.org",
        "S: 250-PIPELINING",
        "S: 250 HELP",
        "C: MAIL FROM:<a@example.com>",
        "C: RCPT TO:<b@example.org>",
        "C: DATA",
        "S: 250 ok",
        "S: 550 5.1.1 no such user",
        "S: 503 no recipients",
    ]


def test_the_content_is_not_in_it_and_the_transaction_before_is_gone() -> None:
    session = ready(b"PIPELINING")
    for code in (b"250 2.0.0 taken", b"554-5.7.1 not\r\n554 5.7.1 wanted"):
        session.begin(transaction())
        say(session, b"250 ok", b"250 ok", b"354 go on")
        say(session, code)
    assert session.conversation.text().splitlines()[5:] == [
        "C: MAIL FROM:<a@example.com>",
        "C: RCPT TO:<b@example.org>",
        "C: DATA",
        "S: 250 ok",
        "S: 250 ok",
        "S: 354 go on",
        "(the message content)",
        "S: 554-5.7.1 not",
        "S: 554 5.7.1 wanted",
    ]


def test_nothing_of_a_login_is_in_it_even_if_the_server_repeats_it() -> None:
    credentials = authentication.Credentials("shop", "open sesame")
    session = client.Client("me.example", starttls=True, credentials=credentials)
    say(session, b"220 hello")
    say(session, b"250-peer", b"250 STARTTLS")
    say(session, b"220 go ahead")
    session.secured()
    say(session, b"250-peer", b"250 AUTH LOGIN PLAIN")
    say(session, b"535 5.7.8 wrong: open sesame b3BlbiBzZXNhbWU=")
    assert session.conversation.text().splitlines()[4:] == [
        "C: STARTTLS",
        "S: 220 go ahead",
        "(TLS established)",
        "C: EHLO me.example",
        "S: 250-peer",
        "S: 250 AUTH LOGIN PLAIN",
        "(authentication)",
        "S: 535 (text withheld)",
    ]


def test_how_a_session_broke_off_is_said() -> None:
    session = ready()
    session.begin(transaction())
    say(session, b"\xff\x00\x1b[31m nonsense")
    assert session.conversation.text().splitlines()[-2:] == [
        "C: MAIL FROM:<a@example.com>",
        "(the destination sent an invalid reply: \ufffd[31m nonsense)",
    ]


def test_hostile_octets_are_made_visible_and_take_no_more_than_their_room() -> None:
    session = ready(*[b"X" * 1000] * 25)
    session.begin(transaction(*(f"b{number}@example.org" for number in range(50))))
    hostile = b"550-" + b"\xe2\x80\xae\x1b[2J\xff\x00" + b"y" * 1500
    say(session, b"250 ok")
    for _ in range(50):
        say(session, hostile, b"550 " + b"z" * 1500)
    text = session.conversation.text()
    assert len(text.encode()) <= values.MAX_CONVERSATION_OCTETS + 50
    assert text.startswith("S: 220 mx.example.org ESMTP\nC: EHLO me.example\n")
    assert "lines left out)" in text
    assert text.splitlines()[-1] == "S: 550 " + "z" * 400 + "…"
    assert "S: 550-\ufffd[2J\ufffd\ufffdyyy" in text
    assert text.replace("\n", "").isprintable()
