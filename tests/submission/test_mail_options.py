"""FUTURERELEASE and DELIVERBY: what is announced, stored and refused; over real SMTP, and as a function."""

import asyncio
import email.message
import smtplib

import pytest

from postroad.submission import mail_options
from tests.contexts import SECOND, Clock
from tests.submission.submission_server import ADA, SENDER, TIMEOUT_SECONDS, SubmissionServer

NOW = 1_790_000_000 * SECOND
DAY = 24 * 60 * 60 * SECOND


@pytest.mark.parametrize(
    "parameters, send_at, expires_in",
    [
        ({}, None, None),
        ({"SIZE": "10"}, None, None),
        ({"HOLDFOR": "0"}, NOW, None),
        ({"HOLDFOR": "2592000"}, NOW + 30 * DAY, None),
        ({"HOLDUNTIL": "2026-09-22T14:13:20Z"}, NOW + DAY, None),
        ({"HOLDUNTIL": "2026-09-22T16:13:20.000+02:00"}, NOW + DAY, None),
        ({"BY": "60;R"}, None, 60),
        ({"BY": "+120;rt"}, None, 120),
        ({"BY": "999999999;R"}, None, 432_000),
        ({"BY": "120;N"}, None, None),
        ({"BY": "-120;NT"}, None, None),
        ({"HOLDFOR": "60", "BY": "60;R"}, NOW + 60 * SECOND, 60),
    ],
)
def test_parameters_are_the_options_of_the_api(
    parameters: dict[str, str], send_at: int | None, expires_in: int | None
) -> None:
    options = mail_options.parse(parameters, now=NOW)
    assert (options.send_at(NOW), options.expires_in) == (send_at, expires_in)


@pytest.mark.parametrize(
    "parameters, reply, message",
    [
        ({"HOLDFOR": "2592001"}, "501 5.5.4", r"HOLDFOR: 2592001 seconds; at most 2592000 \(30 days\)"),
        ({"HOLDUNTIL": "2026-10-21T14:13:21Z"}, "501 5.5.4", "HOLDUNTIL: .* is more than 30 days ahead"),
        ({"HOLDUNTIL": "2026-09-21T14:12:19Z"}, "501 5.5.4", "HOLDUNTIL: .* is in the past"),
        ({"HOLDUNTIL": "2026-02-30T12:00:00Z"}, "501 5.5.4", "HOLDUNTIL: no such date"),
        ({"HOLDFOR": "60", "HOLDUNTIL": "2026-09-22T14:13:20Z"}, "501 5.5.4", "give one of them"),
        ({"BY": "0;R"}, "501 5.5.4", "must be positive"),
        ({"BY": "-60;R"}, "501 5.5.4", "must be positive"),
        ({"BY": "59;R"}, "555 5.5.4", "BY: 59 seconds; at least 60"),
    ],
)
def test_values_out_of_range_are_refused(parameters: dict[str, str], reply: str, message: str) -> None:
    with pytest.raises(mail_options.BadOption, match=message) as refused:
        mail_options.parse(parameters, now=NOW)
    assert refused.value.smtp_reply == reply


def test_the_limits_are_announced() -> None:
    assert mail_options.keywords(NOW) == ["DELIVERBY 60", "FUTURERELEASE 2592000 2026-10-21T14:13:20Z"]


async def test_a_message_is_held_and_expires_over_smtp(server: SubmissionServer, clock: Clock) -> None:
    message = email.message.EmailMessage()
    message["From"], message["To"], message["Subject"] = SENDER, ADA, "Your code"
    message.set_content("123456")

    def send() -> None:
        with smtplib.SMTP(*server.addresses["listen"], timeout=TIMEOUT_SECONDS) as client:
            client.ehlo()
            assert client.esmtp_features["deliverby"] == "60"
            assert client.esmtp_features["futurerelease"].startswith("2592000 2")
            client.login(*server.login)
            client.send_message(message, mail_options=["HOLDFOR=3600", "BY=120;R"])
            # The next transaction has options of its own.
            client.send_message(message)

    await asyncio.to_thread(send)
    plain, held = [stored.message for stored in await server.stored()]
    if plain.send_at is not None:  # accepted at the same time: either may be listed first
        plain, held = held, plain
    assert (plain.send_at, plain.expires_at) == (None, None)
    assert (held.send_at, held.expires_at) == (clock.now + 3_600 * SECOND, clock.now + 3_720 * SECOND)


@pytest.mark.parametrize(
    "option, reply",
    [
        ("HOLDFOR=9999999", b"501 5.5.4 invalid_request: HOLDFOR: 9999999 seconds"),
        ("HOLDFOR=soon", b"501 5.5.4 invalid_request: Malformed value of parameter HOLDFOR"),
        ("HOLDUNTIL=2026-01-31", b"501 5.5.4 invalid_request: Malformed value of parameter HOLDUNTIL"),
        ("BY=59;R", b"555 5.5.4 invalid_request: BY: 59 seconds"),
        ("BY=60", b"501 5.5.4 invalid_request: Malformed value of parameter BY"),
    ],
)
async def test_a_bad_value_is_refused_at_mail(server: SubmissionServer, option: str, reply: bytes) -> None:
    async with server.raw() as connection:
        assert (await connection.say(f"MAIL FROM:<{SENDER}> {option}\r\n".encode())).startswith(reply)
        assert (await connection.say(f"MAIL FROM:<{SENDER}>\r\n".encode())).startswith(b"250")
