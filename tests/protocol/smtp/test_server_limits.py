"""There is an end to what a server bears in one session, and real clients never come near it."""

import pytest

from postroad.protocol.smtp import server_events, values
from tests.protocol.smtp.server_driver import Driver, agree, codes, ready

MESSAGE = ("MAIL FROM:<a@example.org>", "RCPT TO:<b@example.net>", "DATA", "x", ".")


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
        assert set(driver.codes(*["NOOP", "RSET"] * 20, *MESSAGE)) <= {"250 2.0.0", "250 2.1.0", "250 2.1.5", "354"}
    assert len(driver.messages) == 50


def test_refused_messages_are_no_idleness() -> None:
    def decide(event: server_events.Event) -> values.Reply:
        return values.Reply(451, "later", "4.7.1") if isinstance(event, server_events.Message) else agree(event)

    driver = Driver(decide=decide)
    driver.say("EHLO x")
    assert driver.codes(*MESSAGE * 200)[-1] == "451 4.7.1"


def test_more_recipients_than_are_taken_may_be_named_but_not_without_end() -> None:
    driver = ready(recipients=1000)
    assert driver.codes("DATA", "x", ".") == ["354", "250 2.0.0"]
    assert len(driver.messages[0].recipients) == 100
    ready(driver, recipients=2 * 1000)
    assert driver.machine.is_closed
