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
from typing import Final

import msgspec

from postroad import errors
from postroad.network import frames
from postroad.services import accepting, rates
from postroad.storage import group_commit, store
from postroad.telemetry import metrics

# What a door has handed over and not heard of, as content. It is in the memory of both processes, and on its way.
MOST_BYTES_AWAY: Final = 16 * 1024 * 1024
# A keeper refuses what its store does not take in time. One that says nothing for longer hangs.
SILENT_SECONDS: Final = 30.0
LOOK_SECONDS: Final = 1.0


class Wire(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """One thing that is said."""


class Offered(Wire, frozen=True):
    """A door hands a submission over."""

    number: int
    submission: accepting.Submission


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


class Accepted(Wire, frozen=True):
    """A submission is on disk."""

    number: int
    answer: accepting.Accepted


class Refused(Wire, frozen=True):
    """A submission is not, and why."""

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


FromDoor = Offered | Asked | Counted | Woken | Ready | Failed
FromKeeper = Begin | Accepted | Refused | Shown

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
    """A submission whose answer somebody waits for."""

    submission: accepting.Submission
    size: int
    answer: asyncio.Future[accepting.Accepted]
    handed_over_at: float = 0.0


class HandingOver:
    """Accepting, as a door without a writer has it: the same calls as a GroupCommit, answered by the keeper."""

    def __init__(self, line: Line, database: store.Store, *, most_waiting: int) -> None:
        self._line = line
        self._database = database
        self._most_waiting = most_waiting
        self._waiting: collections.deque[_Call] = collections.deque()
        self._away: dict[int, _Call] = {}
        self._bytes_away = 0
        self._last_number = 0
        self._is_failing = False
        self._is_over = False
        self._alarm: asyncio.TimerHandle | None = None

    async def submit(self, item: accepting.Submission, *, size: int = 0) -> accepting.Accepted:
        """Hand a submission over; returns when it is on disk."""
        return await self.start(item, size=size)

    def start(self, item: accepting.Submission, *, size: int = 0) -> asyncio.Future[accepting.Accepted]:
        """The same for whoever does not wait."""
        if self._is_over:
            raise group_commit.stopping()
        if len(self._waiting) + len(self._away) >= self._most_waiting:
            raise group_commit.too_many()
        call = _Call(item, size, asyncio.get_running_loop().create_future())
        self._waiting.append(call)
        self._hand_over()
        return call.answer

    async def recover(self, write: Callable[[store.Transaction], Awaitable[None]]) -> None:
        """If the keeper's store refused the last one: try a small transaction here, which raises what it says now."""
        if self._is_failing:
            async with self._database.transaction() as tx:
                await write(tx)
            self._is_failing = False

    def heard(self, said: Accepted | Refused) -> None:
        """Pass on what became of a submission."""
        call = self._away.pop(said.number, None)
        if call is None:  # it was given up
            return
        self._bytes_away -= call.size
        self._hand_over()
        if call.answer.done():  # the caller went away meanwhile
            return
        if isinstance(said, Accepted):
            self._is_failing = False
            call.answer.set_result(said.answer)
        else:
            refusal = refusal_of(said)
            self._is_failing = self._is_failing or isinstance(refusal, group_commit.TROUBLE)
            call.answer.set_exception(refusal)

    def end(self) -> None:
        """The keeper has gone."""
        self._is_over = True
        calls, self._away, self._bytes_away = [*self._away.values(), *self._waiting], {}, 0
        self._waiting.clear()
        for call in calls:
            if not call.answer.done():
                call.answer.set_exception(group_commit.stopping())

    async def close(self) -> None:
        """Take no more, and wait until everything is answered."""
        self._is_over = True
        if left := [call.answer for call in (*self._away.values(), *self._waiting)]:
            await asyncio.wait(left)
        if self._alarm is not None:
            self._alarm.cancel()

    def _hand_over(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting and (not self._away or self._bytes_away + self._waiting[0].size <= MOST_BYTES_AWAY):
            call = self._waiting.popleft()
            if call.answer.done():
                continue
            self._last_number += 1
            call.handed_over_at = loop.time()
            self._away[self._last_number] = call
            self._bytes_away += call.size
            self._line.say(Offered(self._last_number, call.submission))
        if self._away and self._alarm is None:
            self._alarm = loop.call_later(LOOK_SECONDS, self._look)

    def _look(self) -> None:
        """Give up what a keeper that hangs has had for long; it has them in order."""
        loop = asyncio.get_running_loop()
        self._alarm = loop.call_later(LOOK_SECONDS, self._look) if self._away else None
        while self._away:
            number, call = next(iter(self._away.items()))
            if call.handed_over_at + SILENT_SECONDS > loop.time():
                return
            self.heard(refused(number, _silent()))


def _silent() -> errors.TemporaryFailure:
    msg = "the store did not answer in time; try again with the same key"
    return errors.TemporaryFailure(msg, retry_after=1)
