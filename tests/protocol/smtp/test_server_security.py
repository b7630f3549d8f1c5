"""TLS and authentication on the server's side: nothing in the clear counts after them."""

import pytest

from postroad.protocol.smtp import server, server_events, values
from tests.protocol.smtp.driving import Driver, agree, codes

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


def test_a_wrong_password_counts_as_an_error_and_leaves_the_client_outside() -> None:
    driver = Driver(SUBMISSION, is_secure=True, decide=lambda e: _no(e) or agree(e))
    driver.say("EHLO x")
    assert driver.codes(*[f"AUTH PLAIN {PLAIN}"] * 20) == ["535 5.7.8"] * 20
    assert not driver.machine.session.is_authenticated
    assert driver.codes("FROB") == ["421 4.7.0"]


def _no(event: server_events.Event) -> values.Reply | None:
    return values.Reply(535, "no", "5.7.8") if isinstance(event, server_events.Authenticate) else None


def test_a_response_has_its_own_limit() -> None:
    driver = Driver(SUBMISSION, is_secure=True)
    driver.say("EHLO x", "AUTH PLAIN")
    assert driver.codes("A" * (server.RESPONSE_OCTETS - 2)) == ["501 5.5.2"]
    driver.say("AUTH PLAIN")
    assert driver.codes("A" * server.RESPONSE_OCTETS, "NOOP") == ["501 5.5.2", "250 2.0.0"]
    assert driver.codes("AUTH PLAIN", "*", "NOOP") == ["334", "501 5.7.0", "250 2.0.0"]
    assert driver.codes("AUTH CRAM-MD5", "NOOP") == ["504 5.5.4", "250 2.0.0"]
