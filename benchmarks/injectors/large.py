"""Large messages over HTTP at the same time, each by a sender of its own that does not give up.

A service that has no room for so much at once may say so, with `Retry-After`; then the sender waits as long as it is
told and sends the same request again, with the same `Idempotency-Key`. So every message is accepted in the end, once.
Every answer is counted by its status. Senders are threads that share one body, of which only the beginning differs.
"""

import collections
import concurrent.futures
import contextlib
import dataclasses
import http.client
import statistics
import threading
import time
import typing

from benchmarks.injectors import injection

ACCEPTED = 202
# What a service may answer that has no room now.
TRY_AGAIN = (429, 503)
# A sender gives up after this, which is a message that was not accepted: hundreds of times what one takes.
TIMEOUT_SECONDS = 300.0
ANSWER_SECONDS = 120.0
# Content is handed to the socket in pieces of this size.
PIECE_BYTES = 256 * 1024


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LargeRequest:
    """One request: `beginning` is its own, `rest` is shared with the others."""

    headers: typing.Mapping[str, str]
    beginning: bytes
    rest: bytes

    def pieces(self) -> typing.Iterator[memoryview]:
        """The body, in parts that cost no copy."""
        yield memoryview(self.beginning)
        shared = memoryview(self.rest)
        for start in range(0, len(shared), PIECE_BYTES):
            yield shared[start : start + PIECE_BYTES]


@contextlib.contextmanager
def sending(
    port: int, requests: typing.Sequence[LargeRequest], *, answers: collections.Counter[str]
) -> typing.Iterator[injection.Sending]:
    """Send all messages at once while the block runs, and count their answers by status; ends when all are accepted."""
    under_way = injection.Sending()
    together = threading.Barrier(len(requests))
    began, cpu_before = time.monotonic(), time.process_time()
    with concurrent.futures.ThreadPoolExecutor(len(requests)) as senders:
        sent = [senders.submit(_send, port, request, answers=answers, together=together) for request in requests]
        yield under_way
        milliseconds = sorted(1000 * part.result() for part in sent)
    seconds = time.monotonic() - began
    under_way.result = injection.Injection(
        sent=len(requests),
        failed=0,
        accepts_per_second=len(requests) / seconds,
        seconds=seconds,
        cpu_seconds=time.process_time() - cpu_before,
        latency=injection.Latency(
            p50=statistics.median(milliseconds),
            p99=milliseconds[int(len(milliseconds) * 0.99)],
            worst=milliseconds[-1],
        ),
    )


def _send(port: int, request: LargeRequest, *, answers: collections.Counter[str], together: threading.Barrier) -> float:
    """Send until it is accepted; the seconds that this took."""
    together.wait()
    began = time.monotonic()
    while time.monotonic() - began < TIMEOUT_SECONDS:
        status, retry_after = _ask(port, request)
        answers[status] += 1
        if status == str(ACCEPTED):
            return time.monotonic() - began
        time.sleep(retry_after)
    raise TimeoutError(f"a message was not accepted within {TIMEOUT_SECONDS:.0f} s")


def _ask(port: int, request: LargeRequest) -> tuple[str, float]:
    """The status of the answer, and how long to wait before the next try."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=ANSWER_SECONDS)
    size = len(request.beginning) + len(request.rest)
    try:
        headers = {**request.headers, "Content-Length": str(size)}
        connection.request("POST", "/emails", body=request.pieces(), headers=headers)
        answer = connection.getresponse()
        content = answer.read()
    except (ConnectionError, http.client.HTTPException):
        return "hung up", 1.0
    finally:
        connection.close()
    if answer.status not in (ACCEPTED, *TRY_AGAIN):
        raise RuntimeError(f"a message was refused with {answer.status}: {content[:500]!r}")
    if answer.status in TRY_AGAIN and answer.headers["Retry-After"] is None:
        raise RuntimeError(f"{answer.status} came without Retry-After")
    return str(answer.status), float(answer.headers["Retry-After"] or 0)
