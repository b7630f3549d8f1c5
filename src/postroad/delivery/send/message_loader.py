"""From claimed recipients to mail transactions: content, signature, envelope.

Every recipient makes one job, and so one transaction, with an envelope sender of its own (`return_path.py`). Messages
are loaded for a whole batch of jobs at once, as far as memory allows. The others are loaded when their turn comes,
large ones a few at a time, so that memory stays bounded. The recipients of a message share its content: it is read once
for a batch, and not again as long as one of them has it.
"""

import asyncio
import collections
import re
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from postroad import context
from postroad.concurrency import fairness
from postroad.delivery.routes import routing
from postroad.keys import encryption
from postroad.mail import return_path
from postroad.mail.signing import signer_pool
from postroad.model.delivery import fair_shares
from postroad.protocol.mime import seven_bit
from postroad.protocol.smtp import values
from postroad.storage.engine import store
from postroad.storage.mail import messages, queue
from postroad.telemetry import logs

# Each takes a database connection, and accepting mail needs some as well.
MAX_CONCURRENT_READS: Final = 4
# Prefetched content of all provider queues: 8,000 messages of 6 KB, as many as 500 connections have jobs. Reading one
# such message alone costs 0.1 ms, and on PostgreSQL twice as much as delivering it.
PREFETCH_BYTES: Final = 48 * 1024 * 1024
# Larger ones get less prefetch: reading is a small part of their cost.
SMALL_MESSAGE_BYTES: Final = 32 * 1024
MEDIUM_PREFETCH_BYTES: Final = 8 * 1024 * 1024
LARGE_MESSAGE_BYTES: Final = 256 * 1024
# Each may be 10 MiB as it was sent, almost three times that once it is encoded, and is copied once or twice.
MAX_CONCURRENT_LARGE: Final = 8
# An account that is alone gets six of them, and another one gets the rest.
LARGE_ALPHA: Final = 2.0
# For a destination that is not a large provider: it may stop reading.
MAX_CONCURRENT_LARGE_PER_DESTINATION: Final = 2

_TLS_NOT_REQUIRED: Final = re.compile(rb"(?:\A|\n)tls-required:[ \t]*no[ \t]*(?:\r|\Z)", re.IGNORECASE)

# Results of recipients whose message cannot be sent.
CONTENT_MISSING: Final = values.RecipientResult(
    values.Stage.ROUTE,
    cause=values.Cause.CONTENT_MISSING,
    detail="not attempted: the content of this message is missing from the database",
)
# A bug or a broken key: the message follows the retry schedule and does not hold up others.
WORKER_CRASHES: Final = values.RecipientResult(
    values.Stage.ROUTE,
    cause=values.Cause.WORKER_CRASHES,
    detail="not attempted: delivery workers crashed repeatedly on this message",
)
INTERNAL_ERROR: Final = values.RecipientResult(
    values.Stage.ROUTE,
    cause=values.Cause.INTERNAL_ERROR,
    detail="not attempted: internal error; the service log has the details",
)


@dataclass(slots=True, eq=False)
class Job:
    """A recipient of a message. Without a `transaction`, `failure` says why.

    `fallbacks` are the routes for when no host of the route can be reached.
    """

    claims: tuple[queue.Claimed, ...]
    route: routing.Route
    recipient_count: int = 0
    transaction: values.MailTransaction | None = None
    failure: values.RecipientResult = INTERNAL_ERROR
    is_prepared: bool = False
    is_prefetched: bool = False
    source: messages.Outgoing | None = None
    fallbacks: tuple[routing.Route, ...] = ()

    @property
    def is_large(self) -> bool:
        """Whether only a few of this size are loaded at a time."""
        return self.claims[0].size > LARGE_MESSAGE_BYTES

    @property
    def is_urgent(self) -> bool:
        """Whether it goes before others."""
        return self.claims[0].is_urgent

    @property
    def expires_at(self) -> int | None:
        """When its time is over."""
        return self.claims[0].expires_at

    def has_expired(self, now: int) -> bool:
        """Whether its time is over."""
        return self.expires_at is not None and self.expires_at <= now

    @property
    def account_id(self) -> str:
        """The account that sends."""
        return self.claims[0].account_id

    @property
    def tls_not_required(self) -> bool:
        """Whether the sender wants it delivered although TLS fails (RFC 8689 section 5), such as a report of that."""
        mime = self.transaction.content[-1] if self.transaction is not None else b""
        return _TLS_NOT_REQUIRED.search(_header(mime)) is not None

    @property
    def message(self) -> tuple[str, str]:
        """Account and id of the message."""
        return self.claims[0].account_id, self.claims[0].message_id

    @property
    def keys(self) -> list[queue.Key]:
        """The recipients' rows in the queue."""
        return [claim.key for claim in self.claims]


class _Content(msgspec.Struct, frozen=True):
    """What the recipients of a message get, and the form of it for hosts without SMTPUTF8, if there is one."""

    parts: tuple[bytes, ...]
    is_8bit: bool
    needs_smtputf8: bool
    fallback: "_Content | None" = None


def jobs_of(
    claims: Sequence[queue.Claimed], route: routing.Route, fallbacks: tuple[routing.Route, ...] = ()
) -> list[Job]:
    """The claims as jobs."""
    return [Job((claim,), route, fallbacks=fallbacks) for claim in claims]


class MessageLoader:
    """Loads and signs messages."""

    def __init__(self, ctx: context.Context, signer: signer_pool.DkimSigner | None, log: logs.Logger) -> None:
        self._ctx = ctx
        self._log = log
        self._signer = signer
        self._domain = ctx.settings.delivery.return_path_domain
        self.large = fairness.FairSemaphore(MAX_CONCURRENT_LARGE, alpha=LARGE_ALPHA)
        self._reads = asyncio.Semaphore(MAX_CONCURRENT_READS)
        self._prefetch = fair_shares.FairShares(PREFETCH_BYTES)
        self._loaded: weakref.WeakValueDictionary[tuple[str, str], messages.Outgoing] = weakref.WeakValueDictionary()
        self._prefetched_jobs: collections.Counter[tuple[str, str]] = collections.Counter()

    def choose_prefetch(self, jobs: Sequence[Job]) -> list[Job]:
        """The jobs to prefetch, as far as memory allows until `release`; none is large."""
        chosen: list[Job] = []
        for job in jobs:
            # The recipients of a message share its content.
            size = 0 if job.message in self._prefetched_jobs else job.claims[0].size
            # What has to stay free for small ones.
            reserve = 0 if job.claims[0].size <= SMALL_MESSAGE_BYTES else PREFETCH_BYTES - MEDIUM_PREFETCH_BYTES
            if job.is_large or self._prefetch.free - size < reserve:
                continue
            if not size or self._prefetch.take((fair_shares.Party(job.account_id),), size):
                self._prefetched_jobs[job.message] += 1
                job.is_prefetched = True
                chosen.append(job)
        return chosen

    def release(self, job: Job) -> None:
        """A job is done: drop its content, and free its prefetch memory with the last job of the message."""
        job.source = job.transaction = None
        if job.is_prefetched:
            job.is_prefetched = False
            self._prefetched_jobs[job.message] -= 1
            if not self._prefetched_jobs[job.message]:
                del self._prefetched_jobs[job.message]
                self._prefetch.give_back((fair_shares.Party(job.account_id),), job.claims[0].size)

    async def prepare(self, jobs: Sequence[Job], ready: Callable[[Job], None]) -> None:
        """Prepare jobs, and call `ready` with each. Those without a call wait for the database."""
        by_message: dict[tuple[str, str], list[Job]] = {}
        for job in jobs:
            by_message.setdefault(job.message, []).append(job)
        outgoing = await self._load(list(by_message))
        tasks = [self._prepare(together, outgoing.get(key), ready) for key, together in by_message.items()]
        if self._signer is None:
            for one in tasks:  # none of them waits, so they need no tasks
                await one
        else:
            await asyncio.gather(*tasks)

    async def _load(self, wanted: Sequence[tuple[str, str]]) -> dict[tuple[str, str], messages.Outgoing]:
        async with self._reads:
            outgoing = {key: known for key in wanted if (known := self._loaded.get(key)) is not None}
            missing = [key for key in wanted if key not in outgoing]
            if missing:
                async with self._ctx.store.looking_up() as tx:
                    found = await messages.outgoing(tx, missing)
                outgoing |= {(message.account_id, message.id): message for message in found}
        self._loaded.update(outgoing)
        return outgoing

    async def _prepare(
        self, jobs: Sequence[Job], message: messages.Outgoing | None, ready: Callable[[Job], None]
    ) -> None:
        """Prepare the jobs of a message. Its failure must not affect other messages."""
        try:
            content = await self._content(message, message.mime, name=message.id) if message else None
            for job in jobs:
                if message is None or content is None:
                    job.failure = CONTENT_MISSING
                else:
                    job.source, job.recipient_count = message, message.recipient_count
                    job.transaction = self._transaction(job.claims[0], message, content)
        except store.UNAVAILABLE as error:
            self._log.warning("message_load_deferred", message_id=jobs[0].message[1], error=error.message)
            return
        except encryption.DecryptionError as problem:
            failure = values.RecipientResult(
                values.Stage.ROUTE, cause=values.Cause.CONFIGURATION, detail=f"not attempted: {problem}"
            )
            for job in jobs:
                job.failure = failure
        except Exception:  # noqa: BLE001 - logged; the jobs have their failure
            self._log.exception("message_load_failed", message_id=jobs[0].message[1])
        for job in jobs:
            job.is_prepared = True
            ready(job)

    async def _content(self, message: messages.Outgoing, mime: bytes, *, name: str) -> _Content:
        """The content with its signature, which is kept under the name."""
        signature = b""
        if self._signer is not None:
            signature = await self._signer.signature(message.account_id, _domain_of(message.sender_key), name, mime)
        parts = (signature, mime) if signature else (mime,)
        is_8bit = not mime.isascii()
        if not is_8bit or _header(mime).isascii():
            return _Content(parts, is_8bit, needs_smtputf8=False)
        # Only the header needs it: an internationalized address of somebody else must not concern the others.
        downgraded = seven_bit.ascii_header(mime)
        fallback = await self._content(message, downgraded, name=f"{name}-ascii") if downgraded is not None else None
        return _Content(parts, is_8bit, needs_smtputf8=True, fallback=fallback)

    def _transaction(
        self, claim: queue.Claimed, message: messages.Outgoing, content: _Content
    ) -> values.MailTransaction:
        recipient = _mailbox(claim)
        domain = return_path.domain_for(message.sender_key, chosen=message.return_path_domain, configured=self._domain)
        transaction = values.MailTransaction(
            sender=return_path.address(
                self._ctx.keys.return_path, message_id=message.id, recipient_id=claim.recipient_id, domain=domain
            ),
            recipients=(recipient,),
            content=content.parts,
            is_8bit=content.is_8bit,
            needs_smtputf8=content.needs_smtputf8 or not recipient.isascii(),
        )
        if content.fallback is None or not recipient.isascii():
            return transaction
        return msgspec.structs.replace(transaction, fallback=self._transaction(claim, message, content.fallback))


def _mailbox(claim: queue.Claimed) -> str:
    """The envelope address, with an internationalized domain as A-labels (RFC 5891), which every server accepts."""
    if claim.email.isascii():
        return claim.email
    return f"{claim.email.rpartition('@')[0]}@{queue.domain_of(claim.queue_key)}"


def _domain_of(address: str) -> str:
    return address.rpartition("@")[2]


def _header(mime: bytes) -> bytes:
    return mime[: mime.find(b"\r\n\r\n")]
