"""What is kept of a session for people: everything but content and logins, bounded, and safe to show."""

from postroad.protocol.smtp import authentication, client, values

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
