"""The simulator as a client of the standard library meets it, on a real port."""

import asyncio
import smtplib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import TypeVar

import pytest
import pytest_asyncio

from postroad import context
from postroad.services.messages import dev_inbox
from postroad.simulator import mailbox

T = TypeVar("T")
MESSAGE = b"From: a@example.org\r\nSubject: Hello\r\n\r\n.dots\r\n"


@dataclass(frozen=True, slots=True)
class SimulatorHarness:
    """A simulator, and its inbox."""

    address: tuple[str, int]
    mail: dev_inbox.Inbox
    problems: list[Exception]

    async def with_client(self, use: Callable[[smtplib.SMTP], T]) -> T:
        def connected() -> T:
            with smtplib.SMTP(*self.address) as client:
                return use(client)

        return await asyncio.to_thread(connected)

    async def send(self, *recipients: str) -> dict[str, tuple[int, bytes]]:
        return await self.with_client(lambda client: client.sendmail("a@example.org", recipients, MESSAGE))


@pytest_asyncio.fixture
async def harness() -> AsyncIterator[SimulatorHarness]:
    mail = dev_inbox.Inbox(clock=context.system_clock, entropy=bytes)
    problems: list[Exception] = []
    async with mailbox.serve(mail, host="127.0.0.1", port=0, failed=problems.append, slow_seconds=0.01) as address:
        yield SimulatorHarness(address, mail, problems)
    assert problems == []


async def test_mail_arrives_byte_by_byte(harness: SimulatorHarness) -> None:
    assert await harness.send("jo@example.net", "Jane@example.net") == {}
    (received,) = harness.mail.newest_first()
    assert received.content == MESSAGE
    assert (received.envelope_from, received.envelope_to) == ("a@example.org", ("jo@example.net", "Jane@example.net"))
    assert received.subject == "Hello"


async def test_each_recipient_of_a_message_has_its_own_outcome(harness: SimulatorHarness) -> None:
    refused = await harness.send(
        *(f"{name}@example.net" for name in ("jo", "bounce", "blocked", "defer", "fail", "slow")),
    )
    assert {address.partition("@")[0]: (code, text[:5]) for address, (code, text) in refused.items()} == {
        "bounce": (550, b"5.1.1"),
        "blocked": (550, b"5.7.1"),
        "defer": (451, b"4.7.1"),
        "fail": (451, b"4.3.0"),
    }
    assert harness.mail.newest_first()[0].envelope_to == ("jo@example.net", "slow@example.net")


async def test_a_deferred_recipient_is_taken_at_the_third_attempt_and_a_failing_one_never(
    harness: SimulatorHarness,
) -> None:
    for _ in range(2):
        with pytest.raises(smtplib.SMTPRecipientsRefused):
            await harness.send("defer@example.net", "fail@example.net")
    assert (await harness.send("defer@example.net", "fail@example.net")).keys() == {"fail@example.net"}


async def test_dropping_hangs_up_in_data(harness: SimulatorHarness) -> None:
    with pytest.raises(smtplib.SMTPServerDisconnected):
        await harness.send("drop@example.net")
    assert harness.mail.newest_first() == []


async def test_an_address_that_is_taken_is_an_error_for_who_starts_it(harness: SimulatorHarness) -> None:
    host, port = harness.address
    with pytest.raises(OSError, match="in use"):
        async with mailbox.serve(harness.mail, host=host, port=port, failed=harness.problems.append):
            pass


async def test_a_connection_may_meet_one_refusal_after_the_other(harness: SimulatorHarness) -> None:
    def be_refused(client: smtplib.SMTP) -> list[int]:
        client.ehlo()
        reported = []
        for _ in range(200):
            client.mail("a@example.org")
            reported.append(client.rcpt("bounce@example.net")[0])
            client.rset()
        return reported

    assert await harness.with_client(be_refused) == [550] * 200
