"""TLS and authentication on the server's side: nothing in the clear counts after them."""

import pytest

from postroad.protocol.smtp import server, server_events, values
from tests.protocol.smtp.server_driver import Driver, agree, codes

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
