"""What a door in a process of its own says to the keeper, the one process that writes, and what it hears.

SQLite has one writer, and processes that take turns at its lock lose more than their cores bring. So a door reads,
checks and composes, and hands the finished submission over; the keeper gathers those of all doors into its commits. An
answer means what it means in one process: the message is on disk. When the keeper has gone, nobody knows what became of
the submissions that it had: they are refused in the words that ask for a retry with the same key.
"""

import asyncio
import collections
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from postroad import errors
from postroad.network import frames
from postroad.services import accepting, rates
from postroad.storage import group_commit, store
from postroad.telemetry import metrics

# What a door has handed over and not heard of, as content. It is in the memory of both processes, and on its way; this
# much is a good commit already, of 40 messages of 100 KB.
MOST_BYTES_AWAY: Final = 4 * 1024 * 1024
MOST_BYTES_WAITING: Final = group_commit.MOST_BYTES * group_commit.WAITING_BATCHES
# A keeper refuses what its store does not take in time. One that says nothing for so much longer hangs.
SILENT_SECONDS: Final = 20.0
LOOK_SECONDS: Final = 1.0


class Wire(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """One thing that is said."""


class Offered(Wire, frozen=True):
    """A door hands a submission over."""

    number: int
    submission: accepting.Submission


class Probed(Wire, frozen=True):
    """A door wants to know whether mail can be written now."""

    number: int


class Asked(Wire, frozen=True):
    """A door wants to show what all processes have counted."""

    number: int


class Counted(Wire, frozen=True):
    """What a door has counted since it began."""

    counts: metrics.Snapshot


class Woken(Wire, frozen=True):
    """A door has queued mail by another way, or events."""

    mail: bool
    events: bool


class Ready(Wire, frozen=True):
    """A door listens."""


class Failed(Wire, frozen=True):
    """A door cannot start."""

    reason: str


class Begin(Wire, frozen=True):
    """The store is there: a door may open it too."""


class Stop(Wire, frozen=True):
    """A door is to stop, in order."""


class Accepted(Wire, frozen=True):
    """A submission is on disk."""

    number: int
    answer: accepting.Accepted


class Sound(Wire, frozen=True):
    """Mail can be written."""

    number: int


class Refused(Wire, frozen=True):
    """A submission is not, or mail cannot be written, and why."""

    number: int
    kind: str
    message: str
    retry_after: int | None = None
    # When the bucket is full again, for a rate that was exceeded.
    full_at: int | None = None
    # What the store said, for the log of the door.
    cause: str | None = None


class Shown(Wire, frozen=True):
    """What all processes have counted, as text."""

    number: int
    text: bytes


FromDoor = Offered | Probed | Asked | Counted | Woken | Ready | Failed
FromKeeper = Begin | Stop | Accepted | Sound | Refused | Shown

_encoder = msgspec.msgpack.Encoder()
read_from_door: Final = msgspec.msgpack.Decoder(list[FromDoor]).decode
read_from_keeper: Final = msgspec.msgpack.Decoder(list[FromKeeper]).decode


class SaidByKeeper(Exception):
    """The cause of a refusal, as the keeper knew it."""


def refused(number: int, refusal: errors.PostroadError) -> Refused:
    """A refusal, to be said."""
    cause = refusal.__cause__
    return Refused(
        number,
        type(refusal).__name__,
        refusal.message,
        refusal.retry_after,
        refusal.full_at if isinstance(refusal, rates.Exceeded) else None,
        f"{type(cause).__name__}: {cause}" if cause else None,
    )


def refusal_of(said: Refused) -> errors.PostroadError:
    """A refusal, as it was when the keeper raised it."""
    if said.full_at is not None and said.retry_after is not None:
        return rates.Exceeded(said.message, retry_after=said.retry_after, full_at=said.full_at)
    kind: type[errors.PostroadError] = getattr(errors, said.kind)
    refusal = kind(said.message)
    refusal.retry_after = said.retry_after
    refusal.__cause__ = SaidByKeeper(said.cause) if said.cause else None
    return refusal


class Line:
    """One end of the line between a door and the keeper; what is said in one turn of the loop goes out together."""

    def __init__(self, link: frames.Frames) -> None:
        self._link = link
        self._unsaid: list[Wire] = []

    def say(self, what: Wire) -> None:
        """Say something, at the end of this turn of the loop."""
        if not self._unsaid:
            asyncio.get_running_loop().call_soon(self._flush)
        self._unsaid.append(what)

    def close(self) -> None:
        """Hang up, when everything is said."""
        self._flush()
        self._link.close()

    def _flush(self) -> None:
        if self._unsaid:
            unsaid, self._unsaid = self._unsaid, []
            self._link.send(_encoder.encode(unsaid))


@dataclass(slots=True)
class _Call:
    """A submission whose answer somebody waits for, since when, and since when the keeper has it."""

    submission: accepting.Submission
    size: int
    since: float
    answer: asyncio.Future[accepting.Accepted]


class HandingOver:
    """Accepting, as a door without a writer has it: the same calls as a GroupCommit, answered by the keeper."""

    def __init__(self, line: Line, *, most_waiting: int, wait_seconds: float) -> None:
        self._line = line
        self._most_waiting = most_waiting
        self._wait_seconds = wait_seconds
        self._waiting: collections.deque[_Call] = collections.deque()
        self._waiting_bytes = 0
        self._away: dict[int, _Call] = {}
        self._bytes_away = 0
        self._probes: dict[int, asyncio.Future[None]] = {}
        self._last_number = 0
        self._is_over = False
        self._alarm: asyncio.TimerHandle | None = None

    async def submit(self, item: accepting.Submission, *, size: int = 0) -> accepting.Accepted:
        """Hand a submission over; returns when it is on disk."""
        return await self.start(item, size=size)

    def start(self, item: accepting.Submission, *, size: int = 0) -> asyncio.Future[accepting.Accepted]:
        """The same for whoever does not wait."""
        if self._is_over:
            raise group_commit.stopping()
        is_long = len(self._waiting) + len(self._away) >= self._most_waiting
        if is_long or (self._waiting and self._waiting_bytes + size > MOST_BYTES_WAITING):
            raise group_commit.too_many()
        loop = asyncio.get_running_loop()
        call = _Call(item, size, loop.time(), loop.create_future())
        self._waiting.append(call)
        self._waiting_bytes += size
        self._hand_over()
        if self._alarm is None:
            self._alarm = loop.call_later(LOOK_SECONDS, self._look)
        return call.answer

    async def recover(self, _write: Callable[[store.Transaction], Awaitable[None]]) -> None:
        """Let the keeper say whether it can write, and try if its last transaction failed: the store is its own."""
        if self._is_over:
            raise group_commit.stopping()
        self._last_number += 1
        number = self._last_number
        probe = self._probes[number] = asyncio.get_running_loop().create_future()
        try:
            self._line.say(Probed(number))
            await probe
        finally:
            del self._probes[number]

    def heard(self, said: Accepted | Sound | Refused) -> None:
        """Pass on what became of a submission, or of a probe."""
        refusal = refusal_of(said) if isinstance(said, Refused) else None
        if (probe := self._probes.get(said.number)) is not None:
            _answer(probe, refusal)
        elif (call := self._away.pop(said.number, None)) is not None:  # else it was given up
            self._bytes_away -= call.size
            self._hand_over()
            _answer(call.answer, refusal or (said.answer if isinstance(said, Accepted) else None))

    def end(self) -> None:
        """The keeper has gone."""
        self._is_over = True
        left: list[asyncio.Future[Any]] = [call.answer for call in (*self._away.values(), *self._waiting)]
        left += self._probes.values()
        self._away.clear()
        self._waiting.clear()
        self._bytes_away = self._waiting_bytes = 0
        for one in left:
            _answer(one, group_commit.stopping())

    async def close(self) -> None:
        """Take no more, and wait until everything is answered."""
        self._is_over = True
        if left := [call.answer for call in (*self._away.values(), *self._waiting)]:
            await asyncio.wait(left)
        if self._alarm is not None:
            self._alarm.cancel()

    def _hand_over(self) -> None:
        now = asyncio.get_running_loop().time()
        while self._waiting and (not self._away or self._bytes_away + self._waiting[0].size <= MOST_BYTES_AWAY):
            call = self._take()
            if call.answer.done():
                continue
            self._last_number += 1
            call.since = now
            self._away[self._last_number] = call
            self._bytes_away += call.size
            self._line.say(Offered(self._last_number, call.submission))

    def _take(self) -> _Call:
        call = self._waiting.popleft()
        self._waiting_bytes -= call.size
        return call

    def _look(self) -> None:
        """Refuse what has waited too long; all are in order, those that the keeper has and those that it has not."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        while self._waiting and self._waiting[0].since + self._wait_seconds <= now:
            _answer(self._take().answer, group_commit.too_late())
        while self._away and next(iter(self._away.values())).since + self._wait_seconds + SILENT_SECONDS <= now:
            number = next(iter(self._away))
            self.heard(refused(number, _silent()))
        is_idle = not (self._waiting or self._away)
        self._alarm = None if is_idle else loop.call_later(LOOK_SECONDS, self._look)


def _answer(waiting: asyncio.Future[Any], answer: object) -> None:
    if waiting.done():  # whoever waited has gone
        return
    if isinstance(answer, Exception):
        waiting.set_exception(answer)
    else:
        waiting.set_result(answer)


def _silent() -> errors.ServiceUnavailable:
    """Nobody knows what became of it: the keeper may write it yet."""
    return errors.ServiceUnavailable("the store does not answer; try again with the same key", retry_after=5)
