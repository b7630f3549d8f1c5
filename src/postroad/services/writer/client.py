"""The frontend's side of the connection to the writer process.

SQLite has one writer, and processes that take turns at its lock lose more than their cores gain. So a frontend reads,
validates and composes, and hands the finished submission over; the writer batches those of all frontends into its
commits. A reply means the same as within one process: the message is on disk. When the writer dies, the result of its
submissions is unknown: they fail with an error that asks for a retry with the same key.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from postroad import errors
from postroad.concurrency import batcher
from postroad.services.acceptance import batch, refused_sends, transaction
from postroad.services.writer import protocol
from postroad.storage import group_commit, store

# Content of an account that was handed over and is not answered yet. It is in the memory of both processes, and in the
# way of what other accounts hand over; this much is a good commit already.
MAX_BYTES_IN_FLIGHT: Final = group_commit.MAX_BYTES
MAX_BYTES_WAITING: Final = group_commit.MAX_BYTES * group_commit.WAITING_BATCHES
# A writer refuses what its database does not accept in time. One that is silent for this much longer hangs.
WRITER_TIMEOUT_SECONDS: Final = 20.0

_Call = batcher.Call[batch.Entry, transaction.Accepted]


class RemoteCommits(group_commit.Commits[batch.Entry, transaction.Accepted]):
    """The accept path of a frontend: the writer commits what is submitted here."""

    def __init__(self, channel: protocol.Channel, *, max_waiting: int, wait_seconds: float) -> None:
        super().__init__(max_waiting=max_waiting, max_waiting_bytes=MAX_BYTES_WAITING, wait_seconds=wait_seconds)
        self._channel = channel
        self._in_flight: dict[int, _Call] = {}
        self._bytes_in_flight: dict[str, int] = {}
        self._probes: dict[int, asyncio.Future[None]] = {}
        self._last_number = 0
        self._reply_timer: asyncio.TimerHandle | None = None

    async def recover(self, _write: Callable[[store.Transaction], Awaitable[None]]) -> None:
        """Let the writer say whether it can write, and test it if its last transaction failed."""
        if self._is_closing:
            raise batcher.stopping()
        self._last_number += 1
        number = self._last_number
        probe = self._probes[number] = asyncio.get_running_loop().create_future()
        try:
            self._channel.send(protocol.Probe(number))
            await probe
        finally:
            del self._probes[number]

    def on_reply(self, reply: protocol.SubmitOk | protocol.ProbeOk | protocol.Rejected) -> None:
        """Resolve a submission or a probe."""
        refusal = protocol.error_from(reply) if isinstance(reply, protocol.Rejected) else None
        if (probe := self._probes.get(reply.number)) is not None:
            batcher.answer(probe, refusal)
        elif isinstance(reply, protocol.SubmitOk):
            self._settle(reply.number, reply.answer)
        elif refusal is not None:
            self._settle(reply.number, refusal)

    def on_writer_gone(self) -> None:
        """The writer has gone."""
        self._is_closing = True
        left = [*self._in_flight.values(), *self._take_all()]
        self._in_flight.clear()
        self._bytes_in_flight.clear()
        batcher.refuse(left, batcher.stopping())
        for probe in self._probes.values():
            batcher.answer(probe, batcher.stopping())

    def _count(self) -> int:
        return self._waiting + len(self._in_flight)

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

    def _settle(self, number: int, result: transaction.Accepted | errors.PostroadError) -> None:
        call = self._in_flight.pop(number, None)
        if call is not None:  # else it was refused before
            left = self._bytes_in_flight.pop(call.party, 0) - call.size
            if left > 0:
                self._bytes_in_flight[call.party] = left
            if call.party in self._queues:
                self._process(call.party)
            batcher.answer(call.result, result)

    def _refuse_unanswered(self) -> None:
        """Refuse what the writer has had too long; submissions in flight are in order."""
        loop = asyncio.get_running_loop()
        for number in [number for number, call in self._in_flight.items() if call.deadline <= loop.time()]:
            # The result is unknown: the writer may still write it.
            msg = "the database did not respond; retry with the same key"
            self._settle(number, errors.ServiceUnavailable(msg, retry_after=5))
        first = next(iter(self._in_flight.values()), None)
        self._reply_timer = loop.call_at(first.deadline, self._refuse_unanswered) if first else None


def _handed_over(number: int, entry: batch.Entry) -> protocol.WireMessage:
    if isinstance(entry, batch.Batch):
        return protocol.SubmitBatch(number, entry)
    if isinstance(entry, refused_sends.RefusedSend):
        return protocol.CountRefused(number, entry)
    return protocol.Submit(number, entry)
