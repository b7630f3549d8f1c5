"""The server's side of a session: commands in their order, and what is not."""

import dataclasses

import pytest

from postroad.protocol.smtp import server, server_events, server_replies, values
from tests.protocol.smtp.server_driver import FEATURES, Driver, agree, codes, ready

MESSAGE = b"Subject: x\r\n\r\nHello\r\n"


def test_a_whole_session_ends_with_a_message_and_a_farewell() -> None:
    driver = Driver()
    assert driver.say("EHLO client.test") == [
        "250-mx.example.test hello",
        "250-PIPELINING",
        "250-8BITMIME",
        "250-SMTPUTF8",
        "250-ENHANCEDSTATUSCODES",
        "250-CHUNKING",
        "250-DSN",
        "250 SIZE 1000",
    ]
    assert driver.codes("MAIL FROM:<a@example.org> BODY=8BITMIME SIZE=20") == ["250 2.1.0"]
    assert driver.codes("RCPT TO:<b@example.net>") == ["250 2.1.5"]
    assert driver.codes("RCPT TO:<c@example.net>") == ["250 2.1.5"]
    assert driver.codes("DATA") == ["354"]
    assert codes(driver.send(MESSAGE + b".\r\n")) == ["250 2.0.0"]
    assert driver.messages == [
        values.MailTransaction("a@example.org", ("b@example.net", "c@example.net"), (MESSAGE,), is_8bit=True)
    ]
    assert driver.codes("QUIT") == ["221 2.0.0"]
    assert driver.machine.is_closed
    assert (driver.machine.session.hello, driver.machine.session.is_extended) == ("client.test", True)


def test_pipelined_commands_are_answered_in_order_and_in_one_go() -> None:
    driver = Driver()
    everything = (
        b"EHLO client.test\r\nMAIL FROM:<a@example.org>\r\nRCPT TO:<b@example.net>\r\nDATA\r\n"
        + MESSAGE
        + b".\r\nMAIL FROM:<>\r\nRCPT TO:<c@example.net>\r\nNOOP\r\nDATA\r\n.\r\nQUIT\r\n"
    )
    assert codes(driver.send(everything)) == [
        *("250", "250 2.1.0", "250 2.1.5", "354", "250 2.0.0"),
        *("250 2.1.0", "250 2.1.5", "250 2.0.0", "354", "250 2.0.0", "221 2.0.0"),
    ]
    assert [(sent.sender, sent.content) for sent in driver.messages] == [("a@example.org", (MESSAGE,)), ("", (b"",))]


def test_nothing_is_looked_at_before_the_reply_to_what_came_before() -> None:
    session = server.Server(FEATURES, server_events.Session("192.0.2.1"))
    session.receive(b"EHLO a.test\r\nNOOP\r\n")
    assert session.next_event() == server_events.Hello("a.test")
    assert session.next_event() is None
    assert session.take_output() == b""
    session.reply(values.Reply(250, "hello"))
    assert session.next_event() is None
    assert session.take_output().endswith(b"250 2.0.0 OK\r\n")
    with pytest.raises(RuntimeError):
        session.reply(values.Reply(250, "hello"))


@pytest.mark.parametrize(
    "before, command, expected",
    [
        ((), "MAIL FROM:<a@example.org>", "503 5.5.1"),
        ((), "RCPT TO:<a@example.org>", "503 5.5.1"),
        ((), "DATA", "503 5.5.1"),
        ((), "STARTTLS", "503 5.5.1"),
        ((), "RSET", "250 2.0.0"),
        ((), "QUIT", "221 2.0.0"),
        (("EHLO x",), "RCPT TO:<a@example.org>", "503 5.5.1"),
        (("EHLO x",), "DATA", "503 5.5.1"),
        (("EHLO x",), "STARTTLS", "502 5.5.1"),
        (("EHLO x",), "AUTH PLAIN", "502 5.5.1"),
        (("EHLO x", "MAIL FROM:<>"), "MAIL FROM:<>", "503 5.5.1"),
        (("EHLO x", "MAIL FROM:<>"), "DATA", "554 5.5.1"),
        (("EHLO x", "MAIL FROM:<>"), "STARTTLS", "503 5.5.1"),
        (("EHLO x", "MAIL FROM:<>", "RSET"), "RCPT TO:<a@example.org>", "503 5.5.1"),
        (("EHLO x", "MAIL FROM:<>", "EHLO x"), "RCPT TO:<a@example.org>", "503 5.5.1"),
        (("EHLO x", "MAIL FROM:<>", "RCPT TO:<a@example.org>", "RSET"), "DATA", "503 5.5.1"),
    ],
)
def test_a_command_out_of_its_order_is_refused(before: tuple[str, ...], command: str, expected: str) -> None:
    driver = Driver()
    driver.say(*before)
    assert driver.codes(command) == [expected]


@pytest.mark.parametrize(
    "command, expected",
    [
        ("NOOP and more", "250 2.0.0"),
        ("VRFY somebody", "502 5.5.1"),
        ("EXPN list", "502 5.5.1"),
        ("ETRN example.org", "502 5.5.1"),
        ("LHLO client.test", "500 5.5.2"),
        ("HELP", "214 2.0.0"),
        ("noop", "250 2.0.0"),
        ("FROB", "500 5.5.2"),
        ("", "500 5.5.2"),
        ("EHLO", "501 5.5.4"),
        ("EHLO two words", "501 5.5.4"),
        ("DATA now", "503 5.5.1"),
        ("RSET now", "501 5.5.4"),
        ("QUIT now", "501 5.5.4"),
    ],
)
def test_what_needs_no_decision_is_answered_without_one(command: str, expected: str) -> None:
    driver = Driver()
    assert driver.codes(command) == [expected]
    assert driver.events == []


def test_a_session_by_helo_has_no_extensions() -> None:
    driver = Driver()
    assert driver.say("HELO client.test") == ["250 mx.example.test hello"]
    assert driver.codes("MAIL FROM:<a@example.org> SIZE=5") == ["555 5.5.4"]
    assert driver.codes("MAIL FROM:<a@example.org>") == ["250 2.1.0"]
    assert not driver.machine.session.is_extended


def test_a_refusal_of_the_policy_leads_nowhere() -> None:
    refusals: dict[type, values.Reply] = {server_events.Hello: values.Reply(550, "no", "5.7.1")}

    def decide(event: server_events.Event) -> values.Reply:
        return refusals.get(type(event)) or agree(event)

    driver = Driver(decide=decide)
    assert driver.codes("EHLO x", "MAIL FROM:<>") == ["550 5.7.1", "503 5.5.1"]
    refusals = {server_events.Mail: values.Reply(451, "later", "4.3.0")}
    assert driver.codes("EHLO x", "MAIL FROM:<>", "RCPT TO:<b@example.net>") == ["250", "451 4.3.0", "503 5.5.1"]
    refusals = {server_events.Recipient: values.Reply(550, "unknown", "5.1.1")}
    assert driver.codes("MAIL FROM:<>", "RCPT TO:<b@example.net>", "DATA") == ["250 2.1.0", "550 5.1.1", "554 5.5.1"]
    refusals = {server_events.Data: values.Reply(451, "later", "4.3.0")}
    assert driver.codes("RCPT TO:<c@example.net>", "DATA") == ["250 2.1.5", "451 4.3.0"]
    refusals = {server_events.Message: values.Reply(554, "no", "5.6.0")}
    assert driver.codes("DATA", "x", ".") == ["354", "554 5.6.0"]
    assert driver.messages[0].recipients == ("c@example.net",)
    assert driver.codes("DATA") == ["503 5.5.1"]


def test_421_of_the_policy_ends_the_session() -> None:
    driver = Driver(decide=lambda _event: values.Reply(421, "stopping", "4.3.2"))
    assert driver.codes("EHLO x", "NOOP") == ["421 4.3.2"]
    assert driver.machine.is_closed


def test_a_banner_that_turns_away_ends_the_session() -> None:
    session = server.Server(FEATURES, server_events.Session("192.0.2.1"))
    session.greet(values.Reply(421, "too many", "4.7.0"))
    session.receive(b"EHLO x\r\n")
    assert session.next_event() is None
    assert (session.take_output(), session.is_closed) == (b"421 4.7.0 too many\r\n", True)


def test_at_most_so_many_recipients_are_taken_and_the_message_still_goes_to_them() -> None:
    driver = ready(recipients=100)
    assert driver.codes("RCPT TO:<one-more@example.net>") == ["452 4.5.3"]
    assert driver.codes("DATA", "x", ".") == ["354", "250 2.0.0"]
    assert len(driver.messages[0].recipients) == 100


def test_who_is_named_twice_takes_one_place_and_gets_one_message() -> None:
    driver = ready(recipients=99)
    again = [f"RCPT TO:<{name}@EXAMPLE.net>" for name in ("r0", "R1", "r0")]
    assert driver.codes(*again, "RCPT TO:<last@example.net>", *again) == ["250 2.1.5"] * 7
    assert driver.codes("RCPT TO:<one-more@example.net>") == ["452 4.5.3"]
    driver.say("DATA", "x", ".")
    assert driver.messages[0].recipients == (*(f"r{number}@example.net" for number in range(99)), "last@example.net")


@pytest.mark.parametrize(
    "command, expected",
    [
        ("RCPT TO:<no address>", values.Reply(553, "Malformed address", "5.1.3")),
        ("RCPT TO:b@example.net", values.Reply(501, "Syntax error: use TO:<address>", "5.5.4")),
        ("RCPT TO:<one-more@example.net>", server_replies.TOO_MANY_RECIPIENTS),
    ],
)
def test_the_policy_is_asked_for_its_words_when_a_recipient_cannot_be_taken(
    command: str, expected: values.Reply
) -> None:
    def decide(event: server_events.Event) -> values.Reply:
        if isinstance(event, server_events.Rejected):
            return values.Reply(event.reply.code, "other words", event.reply.enhanced)
        return agree(event)

    driver = ready(Driver(decide=decide), recipients=100)
    assert driver.say(command) == [f"{expected.code} {expected.enhanced} other words"]
    assert driver.events[-1] == server_events.Rejected("RCPT", expected)
    assert driver.say("RSET", "MAIL FROM:<a b>")[1] == "553 5.1.7 other words"
    # What is wrong with the order, or with the line, is no matter of an address.
    assert driver.codes(command, "MAIL FROM:<>", "x" * 3000) == ["503 5.5.1", "250 2.1.0", "500 5.5.2"]
    assert not driver.say("x" * 3000)[0].endswith("other words")


def test_a_client_that_errs_too_often_is_let_go() -> None:
    driver = Driver()
    assert driver.codes(*["FROB"] * 20) == ["500 5.5.2"] * 20
    assert not driver.machine.is_closed
    assert driver.codes("FROB", "NOOP") == ["421 4.7.0"]
    assert driver.machine.is_closed


def test_refused_recipients_are_no_errors_of_the_client() -> None:
    driver = Driver(decide=lambda event: values.Reply(550, "unknown", "5.1.1") if is_recipient(event) else agree(event))
    driver.say("EHLO x", "MAIL FROM:<>")
    assert driver.codes(*["RCPT TO:<b@example.net>"] * 50) == ["550 5.1.1"] * 50


def is_recipient(event: server_events.Event) -> bool:
    return isinstance(event, server_events.Recipient)


@pytest.mark.parametrize("verb", ["GET / HTTP/1.1", "POST / HTTP/1.1", "CONNECT a.test:25 HTTP/1.1"])
def test_a_browser_is_let_go_before_its_body_is_obeyed(verb: str) -> None:
    driver = Driver()
    assert driver.codes(verb, "Host: x", "", "EHLO x") == ["421 4.7.0"]
    assert driver.events == []


def test_a_line_that_is_too_long_is_refused_and_the_next_one_obeyed() -> None:
    driver = Driver()
    assert driver.codes("NOOP " + "x" * (2048 - 7)) == ["250 2.0.0"]
    assert driver.codes("NOOP " + "x" * (2048 - 6), "NOOP") == ["500 5.5.2", "250 2.0.0"]
    for _ in range(100):
        assert driver.send(b"x" * 10_000) == []
    assert driver.codes("", "NOOP") == ["500 5.5.2", "250 2.0.0"]


@pytest.mark.parametrize("line", [b"NOOP\n", b"\n", b"NO\rOP\r\n", b"NOOP \r\r\n", b"NOOP\r \n"])
def test_a_bare_cr_or_lf_in_a_command_is_refused(line: bytes) -> None:
    assert codes(Driver().send(line)) == ["500 5.5.2"]


def test_a_null_or_other_bytes_than_utf8_in_a_command_are_refused() -> None:
    assert codes(Driver().send(b"NOOP \0\r\nNOOP \xff\r\n\xc3\xbc\r\n")) == ["500 5.5.2"] * 3


def test_an_address_that_is_not_ascii_needs_smtputf8() -> None:
    driver = Driver()
    assert driver.codes("EHLO x", "MAIL FROM:<jürgen@example.org>") == ["250", "553 5.6.7"]
    assert driver.codes("MAIL FROM:<a@example.org>", "RCPT TO:<jürgen@example.org>") == ["250 2.1.0", "553 5.6.7"]
    assert driver.codes("RSET", "MAIL FROM:<jürgen@example.org> SMTPUTF8") == ["250 2.0.0", "250 2.1.0"]
    assert driver.codes("RCPT TO:<jürgen@bücher.example>", "DATA", "x", ".") == ["250 2.1.5", "354", "250 2.0.0"]
    assert driver.messages[0].needs_smtputf8
    assert driver.messages[0].recipients == ("jürgen@bücher.example",)


@pytest.mark.parametrize("parameter", ["BY=120;R", "HOLDFOR=60", "HOLDUNTIL=2026-01-31T12:00:00Z"])
def test_times_are_taken_only_where_they_are_offered(parameter: str) -> None:
    command = f"MAIL FROM:<a@example.org> {parameter}"
    assert Driver().codes("EHLO client.test", command) == ["250", "555 5.5.4"]
    offering = Driver(dataclasses.replace(FEATURES, time_keywords=lambda: ["DELIVERBY 60"]))
    assert offering.say("EHLO client.test")[-1] == "250 DELIVERBY 60"
    assert offering.codes(command) == ["250 2.1.0"]


# TLS and authentication on the server's side.


SUBMISSION = server_events.Features("mx.example.test", 1000, starttls=True, auth=True)
# Of "jo" and "secret".
PLAIN = "AGpvAHNlY3JldA=="


def test_tls_makes_a_session_begin_anew() -> None:
    driver = Driver(SUBMISSION)
    assert driver.say("EHLO x")[-1] == "250 STARTTLS"
    assert driver.codes(f"AUTH PLAIN {PLAIN}", "STARTTLS") == ["538 5.7.11", "220 2.0.0"]
    assert driver.machine.session.is_secure
    assert driver.codes("MAIL FROM:<>") == ["503 5.5.1"]
    assert driver.say("EHLO x")[-1] == "250 AUTH PLAIN LOGIN"
    assert driver.codes("STARTTLS") == ["502 5.5.1"]
    assert driver.codes(f"AUTH PLAIN {PLAIN}") == ["235 2.7.0"]


@pytest.mark.parametrize("injected", [b"EHLO x\r\n", b"R", b"\r\n"])
def test_what_was_sent_behind_starttls_in_the_clear_ends_the_session(injected: bytes) -> None:
    driver = Driver(SUBMISSION)
    driver.say("EHLO x")
    assert codes(driver.send(b"STARTTLS\r\n" + injected)) == ["421 4.7.0"]
    assert driver.machine.is_closed
    assert not driver.machine.session.is_secure


def test_a_client_that_speaks_right_after_the_handshake_is_heard() -> None:
    session = server.Server(SUBMISSION, server_events.Session("192.0.2.1"))
    session.receive(b"EHLO x\r\n")
    session.next_event()
    session.reply(values.Reply(250, "hello"))
    session.receive(b"STARTTLS\r\n")
    assert session.next_event() == server_events.StartTls()
    session.receive(b"EHLO again\r\n")
    assert session.next_event() is None
    session.secured()
    assert session.next_event() == server_events.Hello("again")


@pytest.mark.parametrize(
    "lines",
    [
        (f"AUTH PLAIN {PLAIN}",),
        (f"auth plain {PLAIN}",),
        ("AUTH PLAIN", PLAIN),
        ("AUTH LOGIN", "am8=", "c2VjcmV0"),
        ("AUTH LOGIN am8=", "c2VjcmV0"),
    ],
)
def test_a_client_authenticates_in_each_way(lines: tuple[str, ...]) -> None:
    driver = Driver(SUBMISSION, is_secure=True)
    driver.say("EHLO x")
    assert driver.codes(*lines) == ["334"] * (len(lines) - 1) + ["235 2.7.0"]
    (event,) = driver.events[1:]
    assert isinstance(event, server_events.Authenticate)
    assert (event.credentials.username, event.credentials.password) == ("jo", "secret")
    assert "secret" not in repr(event)
    assert driver.machine.session.is_authenticated
    assert driver.codes(*lines)[0] == "503 5.5.1"


def answering(reply: values.Reply) -> Driver:
    """A session under TLS in which AUTH is answered so."""

    def decide(event: server_events.Event) -> values.Reply:
        return reply if isinstance(event, server_events.Authenticate) else agree(event)

    driver = Driver(SUBMISSION, is_secure=True, decide=decide)
    driver.say("EHLO x")
    return driver


def test_the_fifth_wrong_password_ends_the_session() -> None:
    driver = answering(values.Reply(535, "no", "5.7.8"))
    assert driver.codes(*[f"AUTH PLAIN {PLAIN}"] * 4, "NOOP") == ["535 5.7.8"] * 4 + ["250 2.0.0"]
    assert not driver.machine.session.is_authenticated
    assert driver.codes("AUTH LOGIN", "am8=", "c2VjcmV0", "NOOP") == ["334", "334", "421 4.7.0"]
    assert driver.machine.is_closed


@pytest.mark.parametrize("reply", [values.Reply(451, "slowly", "4.7.1"), values.Reply(454, "later", "4.7.0")])
def test_a_login_that_is_refused_temporarily_is_a_failed_one_too(reply: values.Reply) -> None:
    driver = answering(reply)
    expected = [f"{reply.code} {reply.enhanced}"] * 4 + ["421 4.7.0"]
    assert driver.codes(*[f"AUTH PLAIN {PLAIN}"] * 10) == expected
    assert driver.machine.is_closed


def test_who_may_not_log_in_without_tls_is_told_what_to_do() -> None:
    driver = Driver(SUBMISSION)
    driver.say("EHLO x")
    assert driver.say(f"AUTH PLAIN {PLAIN}") == [
        "538 5.7.11 Encryption required for authentication; use STARTTLS first"
    ]


def test_auth_has_no_place_in_a_transaction() -> None:
    driver = Driver(SUBMISSION, is_secure=True)
    driver.say("EHLO x", "MAIL FROM:<a@example.org>")
    assert driver.codes(f"AUTH PLAIN {PLAIN}") == ["503 5.5.1"]
    driver.say("RCPT TO:<b@example.net>")
    assert driver.codes(f"AUTH PLAIN {PLAIN}") == ["503 5.5.1"]
    assert driver.codes("RSET", f"AUTH PLAIN {PLAIN}") == ["250 2.0.0", "235 2.7.0"]


@pytest.mark.parametrize(
    "response, expected",
    [
        (b"*", "501 5.7.0"),
        (b"=", "501 5.5.2"),
        (b"am8Ac2VjcmV0", "501 5.5.2"),  # "jo", "secret": no identity
        (b"Ym9zcwBqbwBzZWNyZXQ=", "535 5.7.8"),  # "boss", "jo", "secret"
        (b"not base64", "501 5.5.2"),
        (b"\xff\xfe", "501 5.5.2"),
        (b"AGpv\rAHNlY3JldA==", "501 5.5.2"),
        (b"", "501 5.5.2"),
        (b"A" * 65_536, "501 5.5.2"),
    ],
)
def test_a_response_that_is_none_leaves_the_session_alive(response: bytes, expected: str) -> None:
    driver = Driver(SUBMISSION, is_secure=True)
    driver.say("EHLO x", "AUTH PLAIN")
    for begin in range(0, len(response), 1000):
        assert driver.send(response[begin : begin + 1000]) == []
        assert len(driver.machine._buffer) <= 12_288 + 1000
    assert codes(driver.send(b"\r\nNOOP\r\n")) == [expected, "250 2.0.0"]
    assert not [event for event in driver.events if isinstance(event, server_events.Authenticate)]
    assert driver.codes(f"AUTH PLAIN {PLAIN}") == ["235 2.7.0"]


def test_a_response_has_its_own_limit() -> None:
    driver = Driver(SUBMISSION, is_secure=True)
    driver.say("EHLO x", "AUTH PLAIN")
    assert driver.codes("A" * (12_288 - 2)) == ["501 5.5.2"]
    driver.say("AUTH PLAIN")
    assert driver.codes("A" * 12_288, "NOOP") == ["501 5.5.2", "250 2.0.0"]
    assert driver.codes("AUTH PLAIN", "*", "NOOP") == ["334", "501 5.7.0", "250 2.0.0"]
    assert driver.codes("AUTH CRAM-MD5", "NOOP") == ["504 5.5.4", "250 2.0.0"]


# There is an end to what a server bears in one session, and real clients never come near it.


MAIL_LINES = ("MAIL FROM:<a@example.org>", "RCPT TO:<b@example.net>", "DATA", "x", ".")


def refusing_senders(event: server_events.Event) -> values.Reply:
    return values.Reply(530, "log in", "5.7.0") if isinstance(event, server_events.Mail) else agree(event)


@pytest.mark.parametrize("command", ["NOOP", "HELP", "RSET", "EHLO x", "MAIL FROM:<a@example.org>"])
def test_commands_that_lead_to_no_message_end_the_session(command: str) -> None:
    driver = Driver(decide=refusing_senders)
    driver.say("EHLO x")
    said = codes(driver.say(*[command] * 200))
    assert said[-1] == "421 4.7.0"
    assert len(said) == 100
    assert driver.machine.is_closed


@pytest.mark.parametrize("chunk", [b"BDAT 0\r\n", b"BDAT 1\r\nx"])
def test_chunks_of_nothing_are_no_message(chunk: bytes) -> None:
    driver = ready()
    said = codes(driver.send(chunk * 200))
    assert said == ["250 2.0.0"] * 98 + ["421 4.7.0"]


def test_a_large_message_may_come_in_many_chunks() -> None:
    driver = ready(Driver(server_events.Features("mx.example.test", 1_000_000)))
    chunk = b"BDAT 1000\r\n" + b"x" * 998 + b"\r\n"
    assert codes(driver.send(chunk * 500 + b"BDAT 0 LAST\r\n")) == ["250 2.0.0"] * 501
    assert driver.messages[0].size == 500_000


def test_a_connection_that_is_kept_may_ask_again_and_again_whether_it_lives() -> None:
    driver = Driver()
    driver.say("EHLO x")
    for _ in range(50):
        assert set(driver.codes(*["NOOP", "RSET"] * 20, *MAIL_LINES)) <= {"250 2.0.0", "250 2.1.0", "250 2.1.5", "354"}
    assert len(driver.messages) == 50


def test_refused_messages_are_no_idleness() -> None:
    def decide(event: server_events.Event) -> values.Reply:
        return values.Reply(451, "later", "4.7.1") if isinstance(event, server_events.Message) else agree(event)

    driver = Driver(decide=decide)
    driver.say("EHLO x")
    assert driver.codes(*MAIL_LINES * 200)[-1] == "451 4.7.1"


def test_more_recipients_than_are_taken_may_be_named_but_not_without_end() -> None:
    driver = ready(recipients=1000)
    assert driver.codes("DATA", "x", ".") == ["354", "250 2.0.0"]
    assert len(driver.messages[0].recipients) == 100
    ready(driver, recipients=2 * 1000)
    assert driver.machine.is_closed
