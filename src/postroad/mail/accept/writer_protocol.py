"""What frontends and the writer exchange over a socket pair, and the commits of a frontend, which the writer makes."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from postroad import errors
from postroad.mail.accept import send_limits, transaction
from postroad.network import framing
from postroad.storage.engine import group_commit, store
from postroad.telemetry import metrics


class WireMessage(msgspec.Struct, frozen=True, array_like=True, tag=True):
    pass


class Submit(WireMessage, frozen=True):
    number: int
    submission: transaction.Submission


class SubmitBatch(WireMessage, frozen=True):
    number: int
    batch: transaction.Batch


class CountRefused(WireMessage, frozen=True):
    """A frontend has refused a send, which counts towards the rate."""

    number: int
    refused: transaction.RefusedSend


class Probe(WireMessage, frozen=True):
    """A frontend asks whether mail can be written now."""

    number: int


class MetricsRequest(WireMessage, frozen=True):
    """A frontend asks for the metrics of all processes."""

    number: int


class MetricsSnapshot(WireMessage, frozen=True):
    counts: metrics.Snapshot


class Wakeup(WireMessage, frozen=True):
    """A frontend has queued mail or events in another way."""

    mail: bool
    events: bool


class Ready(WireMessage, frozen=True):
    pass


class StartFailed(WireMessage, frozen=True):
    reason: str


class StoreReady(WireMessage, frozen=True):
    """The database is ready: a frontend may open it too."""


class Reload(WireMessage, frozen=True):
    """The writer's request to read the settings again."""


class Drain(WireMessage, frozen=True):
    """The writer's request to tell load balancers that the frontend is about to stop."""


class Stop(WireMessage, frozen=True):
    pass


class SubmitOk(WireMessage, frozen=True):
    number: int
    answer: transaction.Accepted | transaction.Counted


class ProbeOk(WireMessage, frozen=True):
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
    number: int
    text: bytes


FromFrontend = (
    Submit | SubmitBatch | CountRefused | Probe | MetricsRequest | MetricsSnapshot | Wakeup | Ready | StartFailed
)
FromWriter = StoreReady | Reload | Drain | Stop | SubmitOk | ProbeOk | Rejected | MetricsReply

_encoder = msgspec.msgpack.Encoder()
decode_from_frontend: Final = msgspec.msgpack.Decoder(list[FromFrontend]).decode
decode_from_writer: Final = msgspec.msgpack.Decoder(list[FromWriter]).decode


class WriterError(Exception):
    """The cause of a refusal, as the writer knew it."""


def rejection_of(number: int, refusal: errors.PostroadError) -> Rejected:
    cause = refusal.__cause__
    return Rejected(
        number,
        type(refusal).__name__,
        refusal.message,
        refusal.retry_after,
        refusal.full_at if isinstance(refusal, send_limits.Exceeded) else None,
        f"{type(cause).__name__}: {cause}" if cause else None,
    )


def error_from(reply: Rejected) -> errors.PostroadError:
    if reply.full_at is not None and reply.retry_after is not None:
        return send_limits.Exceeded(reply.message, retry_after=reply.retry_after, full_at=reply.full_at)
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
        self._flush()
        self._link.close()

    def _flush(self) -> None:
        if self._unsent:
            unsaid, self._unsent = self._unsent, []
            self._link.send(_encoder.encode(unsaid))


# Content of an account that was handed over and is not answered yet. It is in the memory of both processes, and in the
# way of what other accounts hand over; this much is a good commit already.
MAX_BYTES_IN_FLIGHT: Final = group_commit.MAX_BYTES
MAX_BYTES_WAITING: Final = group_commit.MAX_BYTES * group_commit.WAITING_BATCHES
# A writer refuses what its database does not accept in time. One that is silent for this much longer hangs.
WRITER_TIMEOUT_SECONDS: Final = 20.0

_Result = transaction.Accepted | transaction.Counted


class RemoteCommits(group_commit.Commits[transaction.Entry, _Result]):
    """The accept path of a frontend: the writer commits what is submitted here."""

    def __init__(self, channel: Channel, *, max_waiting: int, wait_seconds: float) -> None:
        super().__init__(max_waiting=max_waiting, max_waiting_bytes=MAX_BYTES_WAITING, wait_seconds=wait_seconds)
        self._channel = channel
        self._bytes_in_flight: dict[str, int] = {}
        self._probes: dict[int, asyncio.Future[None]] = {}
        self._last_number = 0
        self._reply_timer: asyncio.TimerHandle | None = None

    async def recover(self, _write: Callable[[store.Transaction], Awaitable[None]]) -> None:
        """Let the writer say whether it can write, and test it if its last transaction failed."""
        if self._is_closing:
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
        refusal = error_from(reply) if isinstance(reply, Rejected) else None
        if (probe := self._probes.get(reply.number)) is not None:
            group_commit.answer(probe, refusal)
        elif isinstance(reply, SubmitOk):
            self._settle(reply.number, reply.answer)
        elif refusal is not None:
            self._settle(reply.number, refusal)

    def on_writer_gone(self) -> None:
        self._is_closing = True
        left = [*self._in_flight.values(), *self._take_all()]
        self._in_flight.clear()
        self._bytes_in_flight.clear()
        group_commit.refuse(left, group_commit.stopping())
        for probe in self._probes.values():
            group_commit.answer(probe, group_commit.stopping())

    def _process(self, party: str) -> None:
        """Hand over as much of the party as may be in flight."""
        loop = asyncio.get_running_loop()
        queue = self._queues.get(party)
        while queue is not None and queue.calls:
            call = queue.calls[0]
            in_flight = self._bytes_in_flight.get(party)
            if in_flight is not None and in_flight + call.size > MAX_BYTES_IN_FLIGHT:
                return
            self._pop(queue)
            if call.result.done():  # its caller was cancelled
                continue
            self._last_number += 1
            call.deadline = loop.time() + self._wait_seconds + WRITER_TIMEOUT_SECONDS
            self._in_flight[self._last_number] = call
            self._bytes_in_flight[party] = (in_flight or 0) + call.size
            self._channel.send(_handed_over(self._last_number, call.item))
            if self._reply_timer is None:
                self._reply_timer = loop.call_at(call.deadline, self._refuse_unanswered)

    async def _drain(self) -> None:
        waiting = [call for queue in self._queues.values() for call in queue.calls]
        if left := [call.result for call in (*self._in_flight.values(), *waiting)]:
            await asyncio.wait(left)
        if self._reply_timer is not None:
            self._reply_timer.cancel()

    def _settle(self, number: int, result: _Result | errors.PostroadError) -> None:
        call = self._in_flight.pop(number, None)
        if call is not None:  # else it was refused before
            left = self._bytes_in_flight.pop(call.party, 0) - call.size
            if left > 0:
                self._bytes_in_flight[call.party] = left
            if call.party in self._queues:
                self._process(call.party)
            group_commit.answer(call.result, result)

    def _refuse_unanswered(self) -> None:
        """Refuse what the writer has had too long; submissions in flight are in order."""
        loop = asyncio.get_running_loop()
        for number in [number for number, call in self._in_flight.items() if call.deadline <= loop.time()]:
            # The result is unknown: the writer may still write it.
            msg = "the database did not respond; retry with the same key"
            self._settle(number, errors.ServiceUnavailable(msg, retry_after=5))
        first = next(iter(self._in_flight.values()), None)
        self._reply_timer = loop.call_at(first.deadline, self._refuse_unanswered) if first else None


def _handed_over(number: int, entry: transaction.Entry) -> WireMessage:
    if isinstance(entry, transaction.Batch):
        return SubmitBatch(number, entry)
    if isinstance(entry, transaction.RefusedSend):
        return CountRefused(number, entry)
    return Submit(number, entry)
