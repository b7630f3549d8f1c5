"""From claimed recipients to something that can be sent: content, signature, envelope.

Recipients of one message at one destination make one job, and so one transaction. Messages are read for a whole batch
of jobs at once, as far as there is room. The others are read when their turn comes, and large ones a few at a time, so
that memory stays bounded however many of them wait.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from postroad.delivery import permits, routing
from postroad.protocol.smtp import values
from postroad.services import context, return_path
from postroad.services.dkim import signing
from postroad.storage import group_commit, messages, queue
from postroad.telemetry import logs

# Recipients of one transaction; RFC 5321 section 4.5.3.1.8 promises that a server takes a hundred.
MAX_RECIPIENTS: Final = 50
# Each takes a connection to the store, and those who accept mail need some as well.
MAX_CONCURRENT_READS: Final = 4
# What all pools together have in memory before its turn: 8,000 messages of 6 KB, as many as 500 connections have jobs.
# To read such a message alone costs 0.1 ms, and on PostgreSQL twice as much as to deliver it.
PREFETCH_BYTES: Final = 48 * 1024 * 1024
# Longer ones have the first part of that alone: for them it is a small part of the cost.
SMALL_MESSAGE_BYTES: Final = 32 * 1024
MEDIUM_PREFETCH_BYTES: Final = 8 * 1024 * 1024
LARGE_MESSAGE_BYTES: Final = 256 * 1024
# Each may be 10 MiB, and is copied once or twice on its way.
MAX_CONCURRENT_LARGE: Final = 8
# What a destination may have of them that is none of the large providers: it may stop reading and never say why.
MAX_CONCURRENT_LARGE_PER_DESTINATION: Final = 2

# What happens to recipients whose message cannot be sent at all.
CONTENT_MISSING: Final = values.RecipientResult(
    values.Stage.ROUTE, detail="the content of this message is missing from the store", permanent=True
)
# A message that cannot be sent because of a bug or a broken key waits by the schedule: it holds up nobody else.
WORKER_CRASHES: Final = values.RecipientResult(
    values.Stage.ROUTE, detail="not tried because of an error in this service: it died again and again meanwhile"
)
INTERNAL_ERROR: Final = values.RecipientResult(
    values.Stage.ROUTE, detail="not tried because of an error in this service, see its log"
)


@dataclass(slots=True, eq=False)
class Job:
    """Recipients of one message at one destination. `envelope` comes last; if it does not, `obstacle` says why."""

    claims: tuple[queue.Claimed, ...]
    route: routing.Route
    recipient_count: int = 0
    transaction: values.MailTransaction | None = None
    failure: values.RecipientResult = INTERNAL_ERROR
    is_prepared: bool = False
    is_ahead: bool = False

    @property
    def is_large(self) -> bool:
        """Whether only a few like it are read at a time."""
        return self.claims[0].size > LARGE_MESSAGE_BYTES

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

    Recipients of one message need not stand together: ids sort by time, and other messages may come in the same one.
    Those that need SMTPUTF8 go apart: a destination without it refuses them, and takes the others.
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
    """Reads, signs and addresses messages."""

    def __init__(self, ctx: context.Context, signer: signing.DkimSigner | None, log: logs.Logger) -> None:
        self._ctx = ctx
        self._log = log
        self._signer = signer
        self._domain = ctx.settings.delivery.return_path_domain
        # As with connections: destinations that do not answer hold no more than half of them.
        self.large = permits.Permits(MAX_CONCURRENT_LARGE)
        self._reads = asyncio.Semaphore(MAX_CONCURRENT_READS)
        self._prefetched_bytes = 0

    def choose_prefetch(self, jobs: Sequence[Job]) -> list[Job]:
        """Those that are read before their turn: what there is room for until `done_with` is told; none is large."""
        chosen: list[Job] = []
        for job in jobs:
            size = job.claims[0].size
            most = PREFETCH_BYTES if size <= SMALL_MESSAGE_BYTES else MEDIUM_PREFETCH_BYTES
            if not job.is_large and self._prefetched_bytes + size <= most:
                self._prefetched_bytes += size
                job.is_ahead = True
                chosen.append(job)
        return chosen

    def release(self, job: Job) -> None:
        """A job was sent, or given up: its content goes, whoever still knows the job, and makes room for another."""
        job.transaction = None
        if job.is_ahead:
            self._prefetched_bytes -= job.claims[0].size
            job.is_ahead = False

    async def prepare(self, jobs: Sequence[Job], ready: Callable[[Job], None]) -> None:
        """Make jobs ready, and tell of each when it is. Those that are not told of wait for the store."""
        async with self._reads, self._ctx.store.reading() as tx:
            found = await messages.outgoing(tx, list({job.message: None for job in jobs}))
        outgoing = {(message.account_id, message.id): message for message in found}
        tasks = [self._prepare(job, outgoing.get(job.message), ready) for job in jobs]
        if self._signer is None:
            for one in tasks:  # nobody waits for anything, so they need no tasks
                await one
        else:
            await asyncio.gather(*tasks)

    async def _prepare(self, job: Job, message: messages.Outgoing | None, ready: Callable[[Job], None]) -> None:
        """Whatever is wrong with one message must not hold up the others."""
        try:
            if message is None:
                job.failure = CONTENT_MISSING
            else:
                self._build_transaction(job, message, await self._signature(message))
        except group_commit.TROUBLE as error:
            self._log.warning("not_prepared_yet", message_id=job.message[1], error=error.message)
            return
        except Exception:  # noqa: BLE001 - the log gets it, and the job its obstacle
            self._log.exception("not_prepared", message_id=job.message[1])
        job.is_prepared = True
        ready(job)

    async def _signature(self, message: messages.Outgoing) -> bytes:
        if self._signer is None:
            return b""
        domain = _domain_of(message.sender_key)
        return await self._signer.signature(message.account_id, domain, message.id, message.mime)

    def _build_transaction(self, job: Job, message: messages.Outgoing, signature: bytes) -> None:
        domain = return_path.domain_for(message.sender_key, configured=self._domain)
        recipients = tuple(map(_mailbox, job.claims))
        job.recipient_count = message.recipient_count
        is_8bit = not message.mime.isascii()
        job.transaction = values.MailTransaction(
            sender=return_path.address(self._ctx.keys.return_path, message_id=message.id, domain=domain),
            recipients=recipients,
            content=(signature, message.mime) if signature else (message.mime,),
            is_8bit=is_8bit,
            needs_smtputf8=not all(map(str.isascii, recipients)) or (is_8bit and not _header(message.mime).isascii()),
        )


def _mailbox(claim: queue.Claimed) -> str:
    """The address for the envelope, an internationalised domain as A-labels (RFC 5891), which every server takes."""
    if claim.email.isascii():
        return claim.email
    return f"{claim.email.rpartition('@')[0]}@{queue.domain_of(claim.lane)}"


def _domain_of(address: str) -> str:
    return address.rpartition("@")[2]


def _header(mime: bytes) -> bytes:
    return mime[: mime.find(b"\r\n\r\n")]
