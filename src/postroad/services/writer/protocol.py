"""The messages between a frontend and the writer process, and the channel that carries them."""

import asyncio
from typing import Final

import msgspec

from postroad import errors
from postroad.network import framing
from postroad.services.acceptance import batch as acceptance_batch
from postroad.services.acceptance import rate_limit, refused_sends, transaction
from postroad.telemetry import metrics


class WireMessage(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """One message on the channel."""


class Submit(WireMessage, frozen=True):
    """A frontend hands a submission over."""

    number: int
    submission: transaction.Submission


class SubmitBatch(WireMessage, frozen=True):
    """A frontend hands a batch over."""

    number: int
    batch: acceptance_batch.Batch


class CountRefused(WireMessage, frozen=True):
    """A frontend has refused a send, which counts towards the rate."""

    number: int
    refused: refused_sends.RefusedSend


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


class Reload(WireMessage, frozen=True):
    """The writer's request to read the settings again."""


class Drain(WireMessage, frozen=True):
    """The writer's request to tell load balancers that the frontend is about to stop."""


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
