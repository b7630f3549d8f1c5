"""The messages between a frontend and the writer process, and the frontend's side of them.

SQLite has one writer, and processes that take turns at its lock lose more than their cores gain. So a frontend reads,
validates and composes, and hands the finished submission over; the writer batches those of all frontends into its
commits. A reply means the same as within one process: the message is on disk. When the writer dies, the result of its
submissions is unknown: they fail with an error that asks for a retry with the same key.
"""

import asyncio
import collections
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from postroad import errors
from postroad.network import framing
from postroad.services.acceptance import rate_limit, transaction
from postroad.storage import group_commit, store
from postroad.telemetry import metrics

# Content handed over and not answered yet. It is in the memory of both processes; this much is a good commit already,
# of 40 messages of 100 KB.
MAX_BYTES_IN_FLIGHT: Final = 4 * 1024 * 1024
MAX_BYTES_WAITING: Final = group_commit.MAX_BYTES * group_commit.WAITING_BATCHES
# A writer refuses what its database does not accept in time. One that is silent for this much longer hangs.
WRITER_TIMEOUT_SECONDS: Final = 20.0
TIMEOUT_CHECK_SECONDS: Final = 1.0


class WireMessage(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """One message on the channel."""


class Submit(WireMessage, frozen=True):
    """A frontend hands a submission over."""

    number: int
    submission: transaction.Submission


class Probe(WireMessage, frozen=True):
    """A frontend asks whether mail can be written now."""

    number: int


class MetricsRequest(WireMessage, frozen=True):
    """A frontend asks for the metrics of all processes."""

    number: int


class MetricsSnapshot(WireMessage, frozen=True):
    """A frontend's own metrics since it started."""

    counts: metrics.Snapshot


class Wakeup(WireMessage, frozen=True):
    """A frontend has queued mail or events in another way."""

    mail: bool
    events: bool


class Ready(WireMessage, frozen=True):
    """A frontend is listening."""


class StartFailed(WireMessage, frozen=True):
    """A frontend cannot start."""

    reason: str


class StoreReady(WireMessage, frozen=True):
    """The database is ready: a frontend may open it too."""


class Stop(WireMessage, frozen=True):
    """A frontend must stop gracefully."""


class SubmitOk(WireMessage, frozen=True):
    """A submission is on disk."""

    number: int
    answer: transaction.Accepted


class ProbeOk(WireMessage, frozen=True):
    """Mail can be written."""

    number: int


class Rejected(WireMessage, frozen=True):
    """A submission was refused, or mail cannot be written, and why."""

    number: int
    kind: str
    message: str
    retry_after: int | None = None
    # When the bucket is full again, for an exceeded rate.
    full_at: int | None = None
    # The database error, for the frontend's log.
    cause: str | None = None


class MetricsReply(WireMessage, frozen=True):
    """The metrics of all processes as text."""

    number: int
    text: bytes


FromFrontend = Submit | Probe | MetricsRequest | MetricsSnapshot | Wakeup | Ready | StartFailed
FromWriter = StoreReady | Stop | SubmitOk | ProbeOk | Rejected | MetricsReply

_encoder = msgspec.msgpack.Encoder()
decode_from_frontend: Final = msgspec.msgpack.Decoder(list[FromFrontend]).decode
decode_from_writer: Final = msgspec.msgpack.Decoder(list[FromWriter]).decode


class WriterError(Exception):
    """The cause of a refusal, as the writer knew it."""


def rejection_of(number: int, refusal: errors.PostroadError) -> Rejected:
    """An error as a message."""
    cause = refusal.__cause__
    return Rejected(
        number,
        type(refusal).__name__,
        refusal.message,
        refusal.retry_after,
        refusal.full_at if isinstance(refusal, rate_limit.Exceeded) else None,
        f"{type(cause).__name__}: {cause}" if cause else None,
    )


def error_from(reply: Rejected) -> errors.PostroadError:
    """The error that the writer raised."""
    if reply.full_at is not None and reply.retry_after is not None:
        return rate_limit.Exceeded(reply.message, retry_after=reply.retry_after, full_at=reply.full_at)
    kind: type[errors.PostroadError] = getattr(errors, reply.kind)
    refusal = kind(reply.message)
    refusal.retry_after = reply.retry_after
    refusal.__cause__ = WriterError(reply.cause) if reply.cause else None
    return refusal


class Channel:
    """One end of the channel between a frontend and the writer; messages of one loop iteration are sent together."""

    def __init__(self, link: framing.FrameProtocol) -> None:
        self._link = link
        self._unsent: list[WireMessage] = []

    def send(self, message: WireMessage) -> None:
        """Send a message at the end of this loop iteration."""
        if not self._unsent:
            asyncio.get_running_loop().call_soon(self._flush)
        self._unsent.append(message)

    def close(self) -> None:
        """Close after everything is sent."""
        self._flush()
        self._link.close()

    def _flush(self) -> None:
        if self._unsent:
            unsaid, self._unsent = self._unsent, []
            self._link.send(_encoder.encode(unsaid))


@dataclass(slots=True)
class _Call:
    """A submission waiting for its reply, since when, and since when the writer has it."""

    submission: transaction.Submission
    size: int
    since: float
    answer: asyncio.Future[transaction.Accepted]


class RemoteCommits:
    """The accept path of a frontend: the interface of GroupCommit, served by the writer."""

    def __init__(self, line: Channel, *, max_waiting: int, wait_seconds: float) -> None:
        self._channel = line
        self._max_waiting = max_waiting
        self._wait_seconds = wait_seconds
        self._waiting: collections.deque[_Call] = collections.deque()
        self._waiting_bytes = 0
        self._in_flight: dict[int, _Call] = {}
        self._bytes_in_flight = 0
        self._probes: dict[int, asyncio.Future[None]] = {}
        self._last_number = 0
        self._is_over = False
        self._timer: asyncio.TimerHandle | None = None

    async def submit(self, item: transaction.Submission, *, size: int = 0) -> transaction.Accepted:
        """Hand a submission over; returns when it is on disk."""
        return await self.start(item, size=size)

    def start(self, item: transaction.Submission, *, size: int = 0) -> asyncio.Future[transaction.Accepted]:
        """The same without waiting."""
        if self._is_over:
            raise group_commit.stopping()
        is_long = len(self._waiting) + len(self._in_flight) >= self._max_waiting
        if is_long or (self._waiting and self._waiting_bytes + size > MAX_BYTES_WAITING):
            raise group_commit.queue_full()
        loop = asyncio.get_running_loop()
        call = _Call(item, size, loop.time(), loop.create_future())
        self._waiting.append(call)
        self._waiting_bytes += size
        self._send_waiting()
        if self._timer is None:
            self._timer = loop.call_later(TIMEOUT_CHECK_SECONDS, self._check_timeouts)
        return call.answer

    async def recover(self, _write: Callable[[store.Transaction], Awaitable[None]]) -> None:
        """Let the writer say whether it can write, and test it if its last transaction failed."""
        if self._is_over:
            raise group_commit.stopping()
        self._last_number += 1
        number = self._last_number
        probe = self._probes[number] = asyncio.get_running_loop().create_future()
        try:
            self._channel.send(Probe(number))
            await probe
        finally:
            del self._probes[number]

    def on_reply(self, reply: SubmitOk | ProbeOk | Rejected) -> None:
        """Resolve a submission or a probe."""
        refusal = error_from(reply) if isinstance(reply, Rejected) else None
        if (probe := self._probes.get(reply.number)) is not None:
            _answer(probe, refusal)
        elif (call := self._in_flight.pop(reply.number, None)) is not None:  # else it was cancelled
            self._bytes_in_flight -= call.size
            self._send_waiting()
            _answer(call.answer, refusal or (reply.answer if isinstance(reply, SubmitOk) else None))

    def on_writer_gone(self) -> None:
        """The writer has gone."""
        self._is_over = True
        left: list[asyncio.Future[Any]] = [call.answer for call in (*self._in_flight.values(), *self._waiting)]
        left += self._probes.values()
        self._in_flight.clear()
        self._waiting.clear()
        self._bytes_in_flight = self._waiting_bytes = 0
        for one in left:
            _answer(one, group_commit.stopping())

    async def close(self) -> None:
        """Accept no more, and wait until everything is answered."""
        self._is_over = True
        if left := [call.answer for call in (*self._in_flight.values(), *self._waiting)]:
            await asyncio.wait(left)
        if self._timer is not None:
            self._timer.cancel()

    def _send_waiting(self) -> None:
        now = asyncio.get_running_loop().time()
        while self._waiting and (
            not self._in_flight or self._bytes_in_flight + self._waiting[0].size <= MAX_BYTES_IN_FLIGHT
        ):
            call = self._take()
            if call.answer.done():
                continue
            self._last_number += 1
            call.since = now
            self._in_flight[self._last_number] = call
            self._bytes_in_flight += call.size
            self._channel.send(Submit(self._last_number, call.submission))

    def _take(self) -> _Call:
        call = self._waiting.popleft()
        self._waiting_bytes -= call.size
        return call

    def _check_timeouts(self) -> None:
        """Refuse what has waited too long; both queues are in order."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        while self._waiting and self._waiting[0].since + self._wait_seconds <= now:
            _answer(self._take().answer, group_commit.timed_out())
        while (
            self._in_flight
            and next(iter(self._in_flight.values())).since + self._wait_seconds + WRITER_TIMEOUT_SECONDS <= now
        ):
            number = next(iter(self._in_flight))
            self.on_reply(rejection_of(number, _writer_timeout()))
        is_idle = not (self._waiting or self._in_flight)
        self._timer = None if is_idle else loop.call_later(TIMEOUT_CHECK_SECONDS, self._check_timeouts)


def _answer(waiting: asyncio.Future[Any], answer: object) -> None:
    if waiting.done():  # the waiter has gone
        return
    if isinstance(answer, Exception):
        waiting.set_exception(answer)
    else:
        waiting.set_result(answer)


def _writer_timeout() -> errors.ServiceUnavailable:
    """The result is unknown: the writer may still write it."""
    return errors.ServiceUnavailable("the database did not respond; retry with the same key", retry_after=5)
