"""From claimed recipients to mail transactions: content, signature, envelope.

Recipients of one message at one destination make one job, and so one transaction. Messages are loaded for a whole batch
of jobs at once, as far as memory allows. The others are loaded when their turn comes, large ones a few at a time, so
that memory stays bounded.
"""

import asyncio
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from postroad.delivery import permits, routing
from postroad.protocol.mime import downgrade
from postroad.protocol.smtp import values
from postroad.services import context, return_path
from postroad.services.dkim import signing
from postroad.storage import messages, queue, store
from postroad.telemetry import logs

# Recipients of one transaction; RFC 5321 section 4.5.3.1.8 requires servers to accept a hundred.
MAX_RECIPIENTS: Final = 50
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
    """Recipients of one message at one destination. Without a `transaction`, `failure` says why."""

    claims: tuple[queue.Claimed, ...]
    route: routing.Route
    recipient_count: int = 0
    transaction: values.MailTransaction | None = None
    failure: values.RecipientResult = INTERNAL_ERROR
    is_prepared: bool = False
    is_prefetched: bool = False

    @property
    def is_large(self) -> bool:
        """Whether only a few of this size are loaded at a time."""
        return self.claims[0].size > LARGE_MESSAGE_BYTES

    @property
    def waives_tls_policies(self) -> bool:
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


def jobs_of(claims: Sequence[queue.Claimed], route: routing.Route) -> list[Job]:
    """The claims as jobs, in the order of their first recipients.

    Recipients of one message need not be adjacent: ids sort by time, and other messages may have the same time.
    Recipients that need SMTPUTF8 get their own job: a server without it refuses them and accepts the others.
    """
    jobs: list[list[queue.Claimed]] = []
    latest: dict[tuple[str, bool], list[queue.Claimed]] = {}
    for claim in claims:
        kind = (claim.message_id, _mailbox(claim).isascii())
        together = latest.get(kind)
        if together is None or len(together) == MAX_RECIPIENTS:
            together = latest[kind] = []
            jobs.append(together)
        together.append(claim)
    return [Job(tuple(together), route) for together in jobs]


class MessageLoader:
    """Loads and signs messages."""

    def __init__(self, ctx: context.Context, signer: signing.DkimSigner | None, log: logs.Logger) -> None:
        self._ctx = ctx
        self._log = log
        self._signer = signer
        self._domain = ctx.settings.delivery.return_path_domain
        # As with connections: destinations that do not answer hold at most half of them.
        self.large = permits.Permits(MAX_CONCURRENT_LARGE)
        self._reads = asyncio.Semaphore(MAX_CONCURRENT_READS)
        self._prefetched_bytes = 0

    def choose_prefetch(self, jobs: Sequence[Job]) -> list[Job]:
        """The jobs to prefetch, as far as memory allows until `release`; none is large."""
        chosen: list[Job] = []
        for job in jobs:
            size = job.claims[0].size
            limit = PREFETCH_BYTES if size <= SMALL_MESSAGE_BYTES else MEDIUM_PREFETCH_BYTES
            if not job.is_large and self._prefetched_bytes + size <= limit:
                self._prefetched_bytes += size
                job.is_prefetched = True
                chosen.append(job)
        return chosen

    def release(self, job: Job) -> None:
        """A job is done: drop its content, and free its prefetch memory."""
        job.transaction = None
        if job.is_prefetched:
            self._prefetched_bytes -= job.claims[0].size
            job.is_prefetched = False

    async def prepare(self, jobs: Sequence[Job], ready: Callable[[Job], None]) -> None:
        """Prepare jobs, and call `ready` with each. Those without a call wait for the database."""
        async with self._reads, self._ctx.store.reading() as tx:
            found = await messages.outgoing(tx, list({job.message: None for job in jobs}))
        outgoing = {(message.account_id, message.id): message for message in found}
        tasks = [self._prepare(job, outgoing.get(job.message), ready) for job in jobs]
        if self._signer is None:
            for one in tasks:  # none of them waits, so they need no tasks
                await one
        else:
            await asyncio.gather(*tasks)

    async def _prepare(self, job: Job, message: messages.Outgoing | None, ready: Callable[[Job], None]) -> None:
        """A failure of one message must not affect the others."""
        try:
            if message is None:
                job.failure = CONTENT_MISSING
            else:
                job.recipient_count = message.recipient_count
                job.transaction = await self._transaction_with_fallback(job, message)
        except store.UNAVAILABLE as error:
            self._log.warning("message_load_deferred", message_id=job.message[1], error=error.message)
            return
        except Exception:  # noqa: BLE001 - logged; the job has its failure
            self._log.exception("message_load_failed", message_id=job.message[1])
        job.is_prepared = True
        ready(job)

    async def _transaction_with_fallback(self, job: Job, message: messages.Outgoing) -> values.MailTransaction:
        transaction = await self._transaction(job, message, message.mime, name=message.id)
        if transaction.needs_smtputf8 and all(map(str.isascii, transaction.recipients)):
            # Only the header needs it: an internationalized address of somebody else must not concern these recipients.
            downgraded = downgrade.ascii_header(message.mime)
            if downgraded is not None:
                fallback = await self._transaction(job, message, downgraded, name=f"{message.id}-ascii")
                return msgspec.structs.replace(transaction, fallback=fallback)
        return transaction

    async def _transaction(
        self, job: Job, message: messages.Outgoing, mime: bytes, *, name: str
    ) -> values.MailTransaction:
        """The transaction with this content, whose signature is kept under the name."""
        signature = b""
        if self._signer is not None:
            signature = await self._signer.signature(message.account_id, _domain_of(message.sender_key), name, mime)
        domain = return_path.domain_for(message.sender_key, configured=self._domain)
        recipients = tuple(map(_mailbox, job.claims))
        is_8bit = not mime.isascii()
        return values.MailTransaction(
            sender=return_path.address(self._ctx.keys.return_path, message_id=message.id, domain=domain),
            recipients=recipients,
            content=(signature, mime) if signature else (mime,),
            is_8bit=is_8bit,
            needs_smtputf8=not all(map(str.isascii, recipients)) or (is_8bit and not _header(mime).isascii()),
        )


def _mailbox(claim: queue.Claimed) -> str:
    """The envelope address, with an internationalized domain as A-labels (RFC 5891), which every server accepts."""
    if claim.email.isascii():
        return claim.email
    return f"{claim.email.rpartition('@')[0]}@{queue.domain_of(claim.queue_key)}"


def _domain_of(address: str) -> str:
    return address.rpartition("@")[2]


def _header(mime: bytes) -> bytes:
    return mime[: mime.find(b"\r\n\r\n")]
