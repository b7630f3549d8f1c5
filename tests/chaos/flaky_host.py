"""An unreliable mail host: it accepts, refuses, defers, answers late and drops connections, and records what it did.

The local part of an address says what must become of it: `gone` is refused permanently, `later` is deferred twice, and
everything else is taken in the end. Beside that, chance has its say about whole sessions: some are slow, some are
dropped before the final dot is answered, with or without the message. A message counts as taken from the moment that
the host would not give it back, whether or not the sender hears of it.
"""

import asyncio
import collections
import contextlib
import functools
import random
import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final

from tests.reliability import sinks

GONE, LATER, FINE = "gone", "later", "fine"
LATER_TIMES: Final = 2
SLOW_SECONDS: Final = 0.4
# No recipient is deferred or dropped more often than this, so that it is accepted before its schedule ends.
MAX_TEMPORARY_FAILURES: Final = 3
_ADDRESS: Final = re.compile(r"<([^>]*)>")


class ContentOutcome(Enum):
    """What becomes of a message whose final dot has come."""

    ACCEPTED = auto()
    ACCEPTED_SLOWLY = auto()
    ACCEPTED_AND_DROPPED = auto()  # in doubt for the sender
    DROPPED = auto()  # in doubt as well, and not taken
    DEFERRED = auto()
    REFUSED = auto()


SHARES: Final = {
    ContentOutcome.ACCEPTED: 0.86,
    ContentOutcome.ACCEPTED_SLOWLY: 0.05,
    ContentOutcome.ACCEPTED_AND_DROPPED: 0.02,
    ContentOutcome.DROPPED: 0.02,
    ContentOutcome.DEFERRED: 0.04,
    ContentOutcome.REFUSED: 0.01,
}

TEMPORARY_FAILURES: Final = {ContentOutcome.DEFERRED, ContentOutcome.DROPPED, ContentOutcome.ACCEPTED_AND_DROPPED}


@dataclass(slots=True)
class Host:
    """The host, and what it remembers, by address: each address is used for one message only."""

    chance: random.Random
    port: int = 0
    taken: collections.Counter[str] = field(default_factory=collections.Counter)
    refused: collections.Counter[str] = field(default_factory=collections.Counter)
    deferred: collections.Counter[str] = field(default_factory=collections.Counter)

    def answer_recipient(self, email: str) -> str:
        """The reply to RCPT."""
        fate = email.partition(".")[0]
        if fate == GONE:
            self.refused[email] += 1
            return "550 5.1.1 nobody has this name"
        if fate == LATER and self.deferred[email] < LATER_TIMES:
            self.deferred[email] += 1
            return "451 4.7.1 come back later"
        return "250 2.1.5 ok"

    def outcome_of(self, recipients: Sequence[str]) -> ContentOutcome:
        """What becomes of a message."""
        (fate,) = self.chance.choices(list(SHARES), list(SHARES.values()))
        if fate in TEMPORARY_FAILURES and max(self.deferred[email] for email in recipients) >= MAX_TEMPORARY_FAILURES:
            fate = ContentOutcome.ACCEPTED
        if fate in TEMPORARY_FAILURES:
            self.deferred.update(recipients)
        if fate is ContentOutcome.REFUSED:
            self.refused.update(recipients)
        if fate in {ContentOutcome.ACCEPTED, ContentOutcome.ACCEPTED_SLOWLY, ContentOutcome.ACCEPTED_AND_DROPPED}:
            self.taken.update(recipients)
        return fate


REPLIES: Final = {
    ContentOutcome.ACCEPTED: "250 2.0.0 taken",
    ContentOutcome.ACCEPTED_SLOWLY: "250 2.0.0 taken",
    ContentOutcome.DEFERRED: "451 4.3.0 not now",
    ContentOutcome.REFUSED: "554 5.7.1 not this one",
}


async def _converse(host: Host, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    def say(line: str) -> None:
        writer.write(line.encode() + b"\r\n")

    recipients: list[str] = []
    say("220 sink.example ESMTP")
    while line := (await reader.readline()).decode().rstrip():
        verb = line[:4].upper()
        if verb == "EHLO":
            say("250-sink.example\r\n250-PIPELINING\r\n250 SIZE 20000000")
        elif verb == "MAIL":
            recipients = []
            say("250 2.1.0 ok")
        elif verb == "RCPT":
            email = _ADDRESS.findall(line)[0]
            say(reply := host.answer_recipient(email))
            recipients += [email] if reply.startswith("250") else []
        elif verb == "DATA" and not recipients:
            say("503 5.5.1 for whom?")
        elif verb == "DATA":
            say("354 go on")
            await _take(host, reader, writer, recipients)
        elif verb == "QUIT":
            say("221 2.0.0 bye")
            return
        else:
            say("250 2.0.0 ok")


async def _take(
    host: Host, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, recipients: Sequence[str]
) -> None:
    while (line := await reader.readline()) != b".\r\n":
        if not line.endswith(b"\n"):
            raise EOFError  # the sender died: a message without its end is none
    fate = host.outcome_of(recipients)
    if fate not in REPLIES:
        raise EOFError
    if fate is ContentOutcome.ACCEPTED_SLOWLY:
        await asyncio.sleep(host.chance.uniform(0, SLOW_SECONDS))
    writer.write(REPLIES[fate].encode() + b"\r\n")


@contextlib.asynccontextmanager
async def running(chance: random.Random) -> AsyncIterator[Host]:
    """A host for the time of the block."""
    host = Host(chance)
    async with sinks.listening(functools.partial(_converse, host), "127.0.0.1") as bound:
        host.port = bound.getsockname()[1]
        yield host
