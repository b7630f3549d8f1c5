"""One attempt, from claimed recipients to a result: content, signature, envelope, and host after host.

Every recipient makes one job, and so one transaction, with an envelope sender of its own (`mail/return_path.py`).
tests/conformance/interface.md, "Recipient results"; RFC 5321 section 5.1.
"""

import asyncio
import contextlib
import dataclasses
import re
import weakref
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from typing import Any, Final

import msgspec

from postroad import config, context
from postroad.concurrency import fairness
from postroad.delivery import routing
from postroad.keys import encryption
from postroad.mail import return_path
from postroad.mail.signing import signer_pool
from postroad.model.bounces import disposition as bounces_disposition
from postroad.model.delivery import fair_shares, tls_policy
from postroad.network.smtp import smtp_connection
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


class Job:
    """A recipient of a message. Without a `transaction`, `failure` says why.

    `fallbacks` are the routes for when no host of the route can be reached. What a delivery reads of the claim again
    and again is taken out of it once.
    """

    __slots__ = (
        "account_id",
        "claim",
        "expires_at",
        "failure",
        "fallbacks",
        "is_large",
        "is_prefetched",
        "is_prepared",
        "is_urgent",
        "key",
        "message",
        "recipient_count",
        "route",
        "source",
        "transaction",
    )

    def __init__(
        self,
        claim: queue.Claimed,
        route: routing.Route,
        recipient_count: int = 0,
        transaction: values.MailTransaction | None = None,
        *,
        fallbacks: tuple[routing.Route, ...] = (),
    ) -> None:
        self.claim = claim
        self.route = route
        self.recipient_count = recipient_count
        self.transaction = transaction
        self.failure = INTERNAL_ERROR
        self.is_prepared = self.is_prefetched = False
        self.source: messages.Outgoing | None = None
        self.fallbacks = fallbacks
        self.account_id = claim.account_id
        self.message = claim.account_id, claim.message_id
        self.key: queue.Key = (*self.message, claim.recipient_id)
        self.expires_at = claim.expires_at
        self.is_urgent = claim.expires_at is not None and claim.is_urgent
        # Only a few of this size are loaded at a time.
        self.is_large = claim.size > LARGE_MESSAGE_BYTES

    def has_expired(self, now: int) -> bool:
        return self.expires_at is not None and self.expires_at <= now

    @property
    def tls_not_required(self) -> bool:
        """Whether the sender wants it delivered although TLS fails (RFC 8689 section 5), such as a report of that."""
        mime = self.transaction.content[-1] if self.transaction is not None else b""
        return _TLS_NOT_REQUIRED.search(_header(mime)) is not None


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
    return [Job(claim, route, fallbacks=fallbacks) for claim in claims]


class MessageLoader:
    """Loads and signs messages.

    Messages are loaded for a whole batch of jobs at once, as far as memory allows. The others are loaded when their
    turn comes, large ones a few at a time, so that memory stays bounded. The recipients of a message share its
    content: it is read once for a batch, and not again as long as one of them has it.
    """

    def __init__(self, ctx: context.Context, signer: signer_pool.DkimSigner | None, log: logs.Logger) -> None:
        self._ctx = ctx
        self._log = log
        self._signer = signer
        self._domain = ctx.settings.delivery.return_path_domain
        self.large = fairness.FairSemaphore(MAX_CONCURRENT_LARGE, alpha=LARGE_ALPHA)
        self._reads = asyncio.Semaphore(MAX_CONCURRENT_READS)
        self._prefetch = fair_shares.FairShares(PREFETCH_BYTES)
        self._loaded: weakref.WeakValueDictionary[tuple[str, str], messages.Outgoing] = weakref.WeakValueDictionary()
        self._prefetched_jobs: dict[tuple[str, str], int] = {}

    def choose_prefetch(self, jobs: Iterable[Job]) -> list[Job]:
        """The jobs to prefetch, as far as memory allows until `release`; none is large."""
        chosen: list[Job] = []
        for job in jobs:
            # The recipients of a message share its content.
            size = 0 if job.message in self._prefetched_jobs else job.claim.size
            # What has to stay free for small ones.
            reserve = 0 if job.claim.size <= SMALL_MESSAGE_BYTES else PREFETCH_BYTES - MEDIUM_PREFETCH_BYTES
            if job.is_large or self._prefetch.free - size < reserve:
                continue
            if not size or self._prefetch.take((fair_shares.Party(job.account_id),), size):
                self._prefetched_jobs[job.message] = self._prefetched_jobs.get(job.message, 0) + 1
                job.is_prefetched = True
                chosen.append(job)
        return chosen

    def release(self, job: Job) -> None:
        """A job is done: drop its content, and free its prefetch memory with the last job of the message."""
        job.source = job.transaction = None
        if job.is_prefetched:
            job.is_prefetched = False
            others = self._prefetched_jobs.pop(job.message) - 1
            if others:
                self._prefetched_jobs[job.message] = others
            else:
                self._prefetch.give_back((fair_shares.Party(job.account_id),), job.claim.size)

    async def prepare(self, jobs: Sequence[Job], ready: Callable[[Job], None]) -> None:
        """Prepare jobs, and call `ready` with each. Those without a call wait for the database."""
        by_message: dict[tuple[str, str], list[Job]] = {}
        for job in jobs:
            by_message.setdefault(job.message, []).append(job)
        outgoing = await self._load(list(by_message))
        preparations = [self._prepare(together, outgoing.get(key), ready) for key, together in by_message.items()]
        if self._signer is None:
            for preparation in preparations:  # none waits, so none needs a task
                await preparation
        else:
            await asyncio.gather(*preparations)

    async def _load(self, wanted: Sequence[tuple[str, str]]) -> dict[tuple[str, str], messages.Outgoing]:
        async with self._reads:
            outgoing = {}
            if self._loaded:
                outgoing = {key: known for key in wanted if (known := self._loaded.get(key)) is not None}
            missing = [key for key in wanted if key not in outgoing]
            if missing:
                async with self._ctx.store.looking_up() as tx:
                    found = await messages.outgoing(tx, missing)
                outgoing |= {(message.account_id, message.id): message for message in found}
        shared = {key: message for key, message in outgoing.items() if message.recipient_count > 1}
        if shared:
            self._loaded.update(shared)
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
                    job.transaction = self._transaction(job.claim, message, content)
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
            signature = await self._signer.signature(
                message.account_id,
                message.sender_key.rpartition("@")[2],
                name,
                mime,
                is_shared=message.recipient_count > 1,
            )
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
        recipient = claim.email if claim.email.isascii() else _mailbox(claim)
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
    """An internationalized envelope address, its domain as A-labels (RFC 5891), which every server accepts."""
    return f"{claim.email.rpartition('@')[0]}@{queue.domain_of(claim.queue_key)}"


def _header(mime: bytes) -> bytes:
    return mime[: mime.find(b"\r\n\r\n")]


CLOSING: Final = 421
SESSION_LIMIT: Final = "session_limit"
Connect = Callable[[routing.Host], Coroutine[Any, Any, smtp_connection.SmtpConnection]]
# A host that fails here has not sent anything.
UNRESPONSIVE_STAGES: Final = frozenset({values.Stage.CONNECT, values.Stage.BANNER})
UPSTREAM_STAGES: Final = frozenset({values.Stage.STARTTLS, values.Stage.AUTH})
# Up to here there is no session, and another upstream may be tried.
SESSION_STAGES: Final = UPSTREAM_STAGES | UNRESPONSIVE_STAGES | {values.Stage.HELLO}
# RFC 5321 section 4.5.3.2 recommends these for replies to commands and to the content. A network either answers a
# connection within seconds or not at all.
TIMEOUTS: Final = smtp_connection.Timeouts(connect=30, reply=300, content=600)
ABORTED: Final = values.RecipientResult(
    values.Stage.CONNECT, cause=values.Cause.CONNECTION_FAILED, detail="the connection attempt was cancelled"
)


class ConnectionSlot(msgspec.Struct, eq=False):
    """The connection of a worker, open or being opened."""

    connection: smtp_connection.SmtpConnection | None = None
    opening: asyncio.Task[smtp_connection.SmtpConnection] | None = None
    is_aborted: bool = False
    is_over: bool = False  # the time of the job is

    @property
    def is_ended(self) -> bool:
        """Whether nothing more may be opened for the job."""
        return self.is_aborted or self.is_over

    def fits(self, route: routing.Route, *, max_deliveries: int) -> bool:
        """Whether another message can use the connection: to a host of this route, with the same TLS policy."""
        connection = self.connection
        if connection is None or not connection.is_usable or connection.deliveries >= max_deliveries:
            return False
        there = connection.destination
        for host in route.hosts:
            if host.address == there.address and host.port == there.port and host.tls == there.tls:
                return True
        return False

    def abort(self) -> None:
        """Close at once and open nothing more; a delivery under way gets a result that says so."""
        self.is_aborted = True
        self._end()

    @contextlib.contextmanager
    def ending_in(self, seconds: float) -> Iterator[None]:
        """End the attempt after this time, unless the server may have the message: then its reply counts."""
        alarm = asyncio.get_running_loop().call_later(seconds, self._end_attempt)
        try:
            yield
        finally:
            alarm.cancel()
            self.is_over = False

    def _end_attempt(self) -> None:
        if self.connection is None or not self.connection.is_in_doubt:
            self.is_over = True
            self._end()

    def _end(self) -> None:
        if self.opening is not None:
            self.opening.cancel()
        if self.connection is not None:
            self.connection.abort()

    async def close(self) -> None:
        """Close politely, with QUIT."""
        connection, self.connection = self.connection, None
        if connection is not None:
            await connection.close()


class JobResult(msgspec.Struct, frozen=True):
    """The result of a job, what it means, and the host."""

    result: values.RecipientResult
    disposition: bounces_disposition.Disposition
    host: str
    address: str
    tls: str
    # What was said, unless the recipient was accepted.
    conversation: str = ""

    @property
    def wants_next_host(self) -> bool:
        """Whether another host should be tried first."""
        return self.disposition.next_host

    @property
    def is_transient(self) -> bool:
        """Whether it is a temporary failure without a request for less, or for time, and nothing was sent."""
        disposition = self.disposition
        is_retried = disposition.verdict is bounces_disposition.Verdict.RETRY and not self.result.in_doubt
        return is_retried and not disposition.slow_down and disposition.retry_after is None

    @property
    def had_no_effect(self) -> bool:
        return self.result.reply is None and not self.result.in_doubt and not self.result.permanent

    @property
    def error(self) -> str:
        """What the server replied, or what happened instead."""
        return self.result.response_text

    @property
    def has_no_session(self) -> bool:
        """Whether no host got as far as a mail transaction."""
        return self.result.stage in SESSION_STAGES

    @property
    def is_unresponsive(self) -> bool:
        """Whether no host could be reached, or none sent a banner."""
        return self.result.reply is None and self.result.stage in UNRESPONSIVE_STAGES


class Attempter:
    """Delivers jobs to hosts.

    An open connection to a host of the route is used first. If the server closed it while it was idle, that says
    nothing about the message: a new one is opened. When a host refuses before RCPT, the next host is tried; the
    refusal is final only when all hosts refuse permanently. An urgent message is tried with the next host after any
    temporary refusal.

    A message whose sender does not require TLS (RFC 8689) goes to the same hosts with the TLS of the setting,
    and does not count as a result of the policy: a report of failing TLS arrives (RFC 8460 section 3), and is not
    reported itself.
    """

    def __init__(
        self, known_hosts: routing.Hosts, connect: Connect, *, setting: tls_policy.TlsPolicy = tls_policy.OPPORTUNISTIC
    ) -> None:
        self._hosts = known_hosts
        self._connect = connect
        self._setting = setting

    async def attempt(self, job: Job, slot: ConnectionSlot, *, max_deliveries: int) -> JobResult | None:
        """Attempt the job; None when no host may be tried now, and nothing was done."""
        refusals: list[JobResult] = []
        if slot.fits(job.route, max_deliveries=max_deliveries):
            job_result = await self._deliver(job, slot)
            if job_result.disposition.verdict is bounces_disposition.Verdict.DELIVERED:
                return job_result
            if not _is_connection_failure(job_result):
                if not _wants_next_host(job, job_result):
                    return job_result
                refusals.append(job_result)
        # The host of the connection that was already open has answered.
        refused_by = (refusals[0].host, refusals[0].address) if refusals else None
        asked = 0
        for host in self._hosts.usable(job.route):
            if slot.is_ended:
                break
            if (host.name, host.address) == refused_by:
                asked += 1
                continue
            await slot.close()
            job_result = await self._try_host(job, slot, host)
            if not _wants_next_host(job, job_result):
                return job_result
            refusals.append(job_result)
            asked += 1
        return _final_result(refusals, is_complete=asked == len(job.route.hosts))

    async def _try_host(self, job: Job, slot: ConnectionSlot, host: routing.Host) -> JobResult:
        if job.tls_not_required and not host.upstream:
            host = dataclasses.replace(host, tls=self._setting, counted_for=None)
        slot.opening = asyncio.get_running_loop().create_task(self._connect(host))
        try:
            slot.connection = await slot.opening
        except asyncio.CancelledError:
            if not slot.is_ended:
                raise
            return _job_result(job, ABORTED, host.name, host.address)
        except smtp_connection.ConnectFailed as failure:
            result = failure.result
            if host.upstream and failure.tls_failure is not None:
                result = msgspec.structs.replace(result, cause=values.Cause.CONFIGURATION)
            self._count_failure(host, result)
            refused = _job_result(job, result, host.name, host.address)
            return msgspec.structs.replace(refused, conversation=failure.conversation)
        finally:
            slot.opening = None
        self._hosts.answered(host)
        return await self._deliver(job, slot)

    def _count_failure(self, host: routing.Host, result: values.RecipientResult) -> None:
        """Whether the host answers. A TLS failure concerns the policy of one domain; for other domains it is fine.

        An upstream has one policy and one login: where they fail, they fail for all mail.
        """
        if result.stage is values.Stage.CONNECT and result.cause is values.Cause.CONFIGURATION:
            return  # our own address, not the host
        fails_for_all = UPSTREAM_STAGES if host.upstream else frozenset()
        if result.stage in fails_for_all or (result.reply is None and result.stage is not values.Stage.STARTTLS):
            self._hosts.failed(host)
        else:
            self._hosts.answered(host)

    async def _deliver(self, job: Job, slot: ConnectionSlot) -> JobResult:
        connection, transaction = slot.connection, job.transaction
        assert connection is not None  # noqa: S101 - the callers have checked
        assert transaction is not None  # noqa: S101 - a job is prepared before it is attempted
        (result,) = await connection.deliver(transaction)
        there = connection.destination
        job_result = _job_result(job, result, there.host, there.address, connection.tls)
        if job_result.disposition.verdict is bounces_disposition.Verdict.DELIVERED:
            return job_result
        return msgspec.structs.replace(job_result, conversation=connection.conversation)


def _job_result(job: Job, result: values.RecipientResult, host: str, address: str, tls: str = "") -> JobResult:
    disposition = bounces_disposition.classify(result, is_upstream=job.route.is_upstream)
    return JobResult(result, disposition, host, address, tls)


def _wants_next_host(job: Job, job_result: JobResult) -> bool:
    """Whether another host should be tried first: for an urgent job also when this one fails for the moment."""
    return job_result.wants_next_host or (job.is_urgent and job_result.is_transient)


def _is_connection_failure(job_result: JobResult) -> bool:
    """Whether a reused connection was closed or exhausted before the server accepted anything of this message."""
    if job_result.disposition.reason == SESSION_LIMIT:
        return True
    result = job_result.result
    if result.permanent or result.in_doubt or not job_result.wants_next_host:
        return False
    return result.reply is None or result.reply.code == CLOSING


def _final_result(refusals: Sequence[JobResult], *, is_complete: bool) -> JobResult | None:
    """The result when every host refused: permanent only if all of them were tried and refused permanently."""
    for refusal in reversed(refusals):
        if refusal.disposition.verdict is bounces_disposition.Verdict.RETRY:
            return refusal
    if not refusals or is_complete:
        return refusals[-1] if refusals else None
    # A host that its breaker skipped may accept what the others refuse.
    open_ended = msgspec.structs.replace(refusals[-1].disposition, verdict=bounces_disposition.Verdict.RETRY)
    return msgspec.structs.replace(refusals[-1], disposition=open_ended)


class Connector:
    """Opens connections with the settings. Raises ConfigError if the password of an upstream cannot be read."""

    def __init__(self, settings: config.Settings, *, hello_name: str) -> None:
        self._hello_name = hello_name
        self._timeouts = TIMEOUTS
        self._sources = {source.name: source for source in settings.sources}
        self._upstreams = {
            upstream.name: (upstream, config.upstream_credentials(upstream)) for upstream in settings.upstreams
        }

    async def connect(self, host: routing.Host) -> smtp_connection.SmtpConnection:
        """A session that is ready for mail; raises `ConnectFailed`."""
        upstream, credentials = self._upstreams.get(host.upstream, (None, None))
        source = self._sources[host.source] if host.source else None
        destination = smtp_connection.Destination(
            host=host.name,
            address=host.address,
            port=host.port,
            tls=host.tls,
            source_address=source.address if source is not None else None,
            implicit_tls=upstream is not None and upstream.tls == "tls",
            credentials=credentials,
        )
        trusted = {"ca_file": upstream.ca_file} if upstream is not None and upstream.ca_file else {}
        hello_name = (source.hello_name if source is not None else "") or self._hello_name
        return await smtp_connection.connect(destination, hello_name=hello_name, timeouts=self._timeouts, **trusted)
