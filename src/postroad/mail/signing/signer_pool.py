"""DKIM signatures of outgoing messages, made by processes that do nothing else."""

import asyncio
import functools
import sys
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, cast

from postroad import context
from postroad.concurrency import caches
from postroad.mail.signing import domain_keys, signer_worker
from postroad.model.units import times
from postroad.protocol.signatures import dkim

# A worker needs 0.4 to 2 ms for one: this many cover a loop iteration, even on a fast machine; a quarter as many left 4
# % more idle time.
WINDOW: Final = 4 * signer_worker.BATCH_SIZE
# About 1 KB each, in each worker.
MAX_KEYS: Final = 1_000
# A key or digest whose worker exits this often is not tried again.
MAX_TRIES: Final = 3
# A full window is signed in far less; after that the message has to be retried later.
ANSWER_SECONDS: Final = 60.0
# A window of signatures takes 70 ms. A worker that is silent for this long hangs, however busy the machine is.
SILENT_SECONDS: Final = 20.0
END_SECONDS: Final = 5.0
_STDIN: Final = 0


class SigningFailed(Exception):
    """No signature is available for this key now; the message says why."""


@dataclass(slots=True, eq=False)
class _Request:
    """A digest waiting for its signature."""

    key: domain_keys.SigningKey
    digest: bytes
    answer: asyncio.Future[bytes]
    tries: int = 0
    worker: "_Worker | None" = field(default=None, repr=False)


class _Worker(asyncio.SubprocessProtocol):
    """One process: its requests in order, and the keys it knows."""

    def __init__(self, owner: "SignerPool") -> None:
        loop = asyncio.get_running_loop()
        self.pending: deque[_Request] = deque()
        self.has_answered = False
        self.heard_at = loop.time()
        self.ended: asyncio.Future[None] = loop.create_future()
        self._clock = loop.time
        self._owner = owner
        self._slots: caches.LruCache[bytes, int] = caches.LruCache(MAX_KEYS)
        self._received = bytearray()
        self._transport: asyncio.SubprocessTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.SubprocessTransport", transport)

    def ask(self, requests: Sequence[_Request]) -> None:
        """Send requests, each preceded by its key if the worker does not have it."""
        if not self.pending:
            self.heard_at = self._clock()
        frames = []
        for request in requests:
            request.worker = self
            self.pending.append(request)
            slot = self._slots.get(request.key.private_key)
            if slot is None:
                slot = self._new_slot(request.key.private_key)
                frames.append(_frame(signer_worker.KEY, slot, request.key.private_key))
            frames.append(_frame(signer_worker.DIGEST, slot, request.digest))
        self._input().write(b"".join(frames))

    def _new_slot(self, private_key: bytes) -> int:
        freed = self._slots.evict()
        slot = len(self._slots) if freed is None else freed
        self._slots.put(private_key, slot)
        return slot

    def pipe_data_received(self, _fd: int, data: bytes | str) -> None:
        self.heard_at, self.has_answered = self._clock(), True
        self._received += cast("bytes", data)
        size = signer_worker.ANSWER.size
        while len(self._received) >= size:
            (length,) = signer_worker.ANSWER.unpack_from(self._received)
            if len(self._received) < size + length:
                break
            _answer(self.pending.popleft(), bytes(self._received[size : size + length]))
            del self._received[: size + length]
        self._owner.dispatch()

    def connection_lost(self, _exc: Exception | None) -> None:
        if self._transport is not None:
            self._transport.close()
        self._owner.on_worker_exit(self)
        self.ended.set_result(None)

    def is_hung(self) -> bool:
        """Whether it has been silent for so long that it must hang."""
        return self._clock() - self.heard_at > SILENT_SECONDS

    def kill(self) -> None:
        """Kill it now."""
        if self._transport is not None and self._transport.get_returncode() is None:
            self._transport.kill()

    async def end(self) -> None:
        """Let it finish, or kill it."""
        self._input().close()
        try:
            async with asyncio.timeout(END_SECONDS):
                await asyncio.shield(self.ended)
        except TimeoutError:
            self.kill()
            await self.ended

    def _input(self) -> asyncio.WriteTransport:
        assert self._transport is not None  # noqa: S101 - called only after it was connected
        return cast("asyncio.WriteTransport", self._transport.get_pipe_transport(_STDIN))


class SignerPool:
    """The workers, and the requests waiting for them."""

    def __init__(self, workers: int, *, program: str = signer_worker.__file__) -> None:
        self._max_workers = workers
        # -P: no directory of this program precedes the library.
        self._command = (sys.executable, "-P", program)
        self._waiting: deque[_Request] = deque()
        self._workers: set[_Worker] = set()
        self._starts: set[asyncio.Task[None]] = set()
        self._is_dispatch_scheduled = False
        self._is_closed = False

    async def sign(self, key: domain_keys.SigningKey, digest: bytes) -> bytes:
        """The signature, or SigningFailed."""
        if self._is_closed:
            raise SigningFailed("the signing processes have stopped")
        loop = asyncio.get_running_loop()
        request = _Request(key, digest, loop.create_future())
        self._waiting.append(request)
        if not self._is_dispatch_scheduled:
            self._is_dispatch_scheduled = True
            loop.call_soon(self.dispatch)
        overdue = loop.call_later(ANSWER_SECONDS, _time_out, request)
        try:
            return await request.answer
        finally:
            overdue.cancel()

    def dispatch(self) -> None:
        """Send waiting requests to workers with room, and start missing workers."""
        self._is_dispatch_scheduled = False
        if not self._waiting or self._is_closed:
            return
        for _ in range(self._max_workers - len(self._workers) - len(self._starts)):
            start = asyncio.get_running_loop().create_task(self._start())
            self._starts.add(start)
            start.add_done_callback(self._end_start)
        shares: dict[_Worker, list[_Request]] = {worker: [] for worker in self._workers}
        while self._waiting and shares:
            worker = min(shares, key=lambda candidate: len(candidate.pending) + len(shares[candidate]))
            if len(worker.pending) + len(shares[worker]) >= WINDOW:
                break
            request = self._waiting.popleft()
            if not request.answer.done():
                shares[worker].append(request)
        for worker, requests in shares.items():
            if requests:
                worker.ask(requests)

    def on_worker_exit(self, worker: _Worker) -> None:
        """A worker has exited: its requests go first again, unless that happened too often."""
        self._workers.discard(worker)
        lost = list(worker.pending)
        worker.pending.clear()
        self._waiting.extendleft(reversed(lost))
        # One that never worked says nothing about its requests, but much about the next one.
        self._count_tries(lost if worker.has_answered else list(self._waiting))
        self.dispatch()

    async def close(self) -> None:
        """Stop the workers after their current requests."""
        self._is_closed = True
        _fail(self._waiting, "the signing processes have stopped")
        self._waiting.clear()
        if self._starts:
            await asyncio.wait(self._starts)
        await asyncio.gather(*(worker.end() for worker in tuple(self._workers)))

    async def _start(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            _, worker = await loop.subprocess_exec(
                lambda: _Worker(self),
                *self._command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=None,  # stderr of a crashing worker goes beside the log
            )
        except OSError:
            self._count_tries(list(self._waiting))
        else:
            if not worker.ended.done():
                self._workers.add(worker)

    def _end_start(self, start: asyncio.Task[None]) -> None:
        self._starts.discard(start)
        self.dispatch()

    def _count_tries(self, requests: Sequence[_Request]) -> None:
        for request in requests:
            request.tries += 1
        hopeless = [request for request in requests if request.tries >= MAX_TRIES or self._is_closed]
        _fail(hopeless, "the signing processes ended before they responded")
        self._waiting = deque(request for request in self._waiting if not request.answer.done())


def _frame(kind: int, slot: int, content: bytes) -> bytes:
    return signer_worker.REQUEST.pack(kind, slot, len(content)) + content


def _answer(request: _Request, signature: bytes) -> None:
    if signature and not request.answer.done():
        request.answer.set_result(signature)
    elif not signature:
        _fail([request], f"the key {request.key.selector} cannot be used")


def _time_out(request: _Request) -> None:
    """The request has waited too long; a worker that was silent meanwhile hangs."""
    if request.worker is not None and request.worker.is_hung():
        request.worker.kill()
    _fail([request], f"the signing processes did not respond within {ANSWER_SECONDS:.0f} seconds")


def _fail(requests: Iterable[_Request], why: str) -> None:
    for request in requests:
        if not request.answer.done():
            request.answer.set_exception(SigningFailed(why))


# DKIM signatures of outgoing mail: each message is signed once, however many destinations it has.
#
# A domain that has published its Ed25519 record gets a second signature beside RSA (RFC 8463), over the same hash.
#
# The key is cached like every fact that decides access (`access_cache.py`): within a second of the domain's removal
# nothing is signed with it. Signatures are kept for the following recipients and attempts; a message whose signature
# was evicted gets a new one, which is equally valid.

# Each process uses up to one core, and starts with the first signature: together they sign more than one process sends.
MAX_WORKERS: Final = 2
# About 20 MB, 35 with second signatures: the mail of the last minute or so at full speed.
MAX_SIGNATURES: Final = 20_000
# The slowest signers process this within the time that a request may take.
MAX_WAITING: Final = 10_000
# Hashing more than this would block the event loop for more than a millisecond.
LARGE_BYTES: Final = 128 * 1024


class DkimSigner:
    """The signer of this process; absent where `testing.sign` is false."""

    def __init__(self, ctx: context.Context) -> None:
        self._ctx = ctx
        self._signers = SignerPool(MAX_WORKERS)
        self._signatures: caches.LruCache[tuple[str, str], bytes] = caches.LruCache(MAX_SIGNATURES)
        self._flights = caches.SingleFlight(MAX_WAITING, what="signatures")

    async def signature(
        self, account_id: str, domain: str, content_name: str, content: bytes, *, is_shared: bool = True
    ) -> bytes:
        """The DKIM-Signature fields to prepend to a message; empty when the account no longer has the domain.

        `content_name` is the message's id, or another name for another form of the message. One that `is_shared` may
        be asked for by several recipients at once.
        Raises DecryptionError when the key cannot be decrypted, SigningFailed when the signers fail, and database
        errors.
        """
        key = await self._key(account_id, domain)
        if key is None:
            return b""
        # With the key's selector: a domain that was removed and added again signs anew.
        name = (key.selector, content_name)
        known = self._signatures.get(name)
        if known is not None:
            return known
        if not is_shared:
            return await self._sign(name, key, domain, content)
        return await self._flights.join(("message", *name), functools.partial(self._sign, name, key, domain, content))

    async def close(self) -> None:
        """Finish work in progress, and stop the signers."""
        await self._flights.close()
        await self._signers.close()

    async def _key(self, account_id: str, domain: str) -> domain_keys.SigningKey | None:
        facts = await self._ctx.access_cache.refresh(self._ctx.clock())
        fact = ("dkim", account_id, domain)
        known: domain_keys.SigningKey | None = facts.get(fact)
        if known is not None:
            return known

        async def look_up() -> domain_keys.SigningKey | None:
            key = await domain_keys.signing_key(self._ctx, account_id, domain)
            if key is not None:
                facts[fact] = key
            return key

        # Shared only by those who trust the same cache: a lookup from before a change must not be used after it.
        return await self._flights.join((id(facts), *fact), look_up)

    async def _sign(self, name: tuple[str, str], key: domain_keys.SigningKey, domain: str, content: bytes) -> bytes:
        is_large = len(content) > LARGE_BYTES
        coverage = await asyncio.to_thread(dkim.cover, content) if is_large else dkim.cover(content)
        # Without an expiry (x=): relays may hold mail for days, and what a receiver stores is verified later too.
        prepare = functools.partial(dkim.prepare, coverage, domain=domain, signed_at=self._ctx.clock() // times.SECOND)
        unsigned = prepare(selector=key.selector)
        # RSA first: a receiver that reads only one signature supports it.
        fields = dkim.finish(unsigned, await self._signers.sign(key, unsigned.digest))
        if key.ed25519 is not None:
            second = prepare(selector=key.ed25519.selector, algorithm="ed25519-sha256")
            # Computed here: sending the digest to a signer process would take as long.
            fields += dkim.finish(second, key.ed25519.private_key.sign(second.digest))
        self._signatures.put(name, fields)
        self._ctx.metrics.signatures.add()
        return fields
