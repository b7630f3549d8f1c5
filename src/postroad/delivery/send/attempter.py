"""One job, host after host, until one of them decides (interface.md, "Recipient results"; RFC 5321 section 5.1).

An open connection to a host of the route is used first. If the server closed it while it was idle, that says nothing
about the message: a new one is opened. When a host refuses before RCPT, the next host is tried; the refusal is final
only when all hosts refuse permanently. An urgent message is tried with the next host after any temporary refusal.

A message whose sender does not require TLS (RFC 8689) goes to the same hosts with the TLS of the setting, and does
not count as a result of the policy: a report of failing TLS arrives (RFC 8460 section 3), and is not reported itself.
"""

import asyncio
import contextlib
import dataclasses
from collections.abc import Callable, Coroutine, Iterator, Sequence
from typing import Any, Final

import msgspec

from postroad import config
from postroad.delivery.routes import routing
from postroad.delivery.send import message_loader
from postroad.model.bounces import disposition as bounces_disposition
from postroad.model.delivery import tls_policy
from postroad.network.smtp import smtp_connection
from postroad.protocol.smtp import values

CLOSING: Final = 421
SESSION_LIMIT: Final = "session_limit"
Connect = Callable[[routing.Host], Coroutine[Any, Any, smtp_connection.SmtpConnection]]
# A host that fails here has not sent anything.
UNRESPONSIVE_STAGES: Final = frozenset({values.Stage.CONNECT, values.Stage.BANNER})
UPSTREAM_STAGES: Final = frozenset({values.Stage.STARTTLS, values.Stage.AUTH})
# Up to here there is no session, and another upstream may be tried.
SESSION_STAGES: Final = UPSTREAM_STAGES | UNRESPONSIVE_STAGES | {values.Stage.HELLO}
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
        if connection is None or not connection.is_usable or self.is_exhausted(max_deliveries=max_deliveries):
            return False
        there = connection.destination
        return any(
            host.address == there.address and host.port == there.port and host.tls == there.tls for host in route.hosts
        )

    def is_exhausted(self, *, max_deliveries: int) -> bool:
        """Whether the connection has reached its message limit."""
        return self.connection is not None and self.connection.deliveries >= max_deliveries

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
    """The result of a job: a result and a disposition for each recipient, and the host."""

    results: tuple[values.RecipientResult, ...]
    dispositions: tuple[bounces_disposition.Disposition, ...]
    host: str
    address: str
    tls: str
    # What was said, unless all recipients were accepted.
    conversation: str = ""

    @property
    def wants_next_host(self) -> bool:
        """Whether another host should be tried first."""
        return all(disposition.next_host for disposition in self.dispositions)

    @property
    def is_transient(self) -> bool:
        """Whether it is a temporary failure without a request for less, or for time, and nothing was sent."""
        return all(
            disposition.verdict is bounces_disposition.Verdict.RETRY
            and not disposition.slow_down
            and disposition.retry_after is None
            for disposition in self.dispositions
        ) and not any(result.in_doubt for result in self.results)

    @property
    def had_no_effect(self) -> bool:
        """Whether the server has neither accepted nor refused anything."""
        return all(result.reply is None and not result.in_doubt and not result.permanent for result in self.results)

    @property
    def error(self) -> str:
        """What the server replied, or what happened instead."""
        return self.results[0].response_text

    @property
    def has_no_session(self) -> bool:
        """Whether no host got as far as a mail transaction."""
        return self.results[0].stage in SESSION_STAGES

    @property
    def is_unresponsive(self) -> bool:
        """Whether no host could be reached, or none sent a banner."""
        return self.results[0].reply is None and self.results[0].stage in UNRESPONSIVE_STAGES


class Attempter:
    """Delivers jobs to hosts."""

    def __init__(
        self, known_hosts: routing.Hosts, connect: Connect, *, setting: tls_policy.TlsPolicy = tls_policy.OPPORTUNISTIC
    ) -> None:
        self._hosts = known_hosts
        self._connect = connect
        self._setting = setting

    async def attempt(self, job: message_loader.Job, slot: ConnectionSlot, *, max_deliveries: int) -> JobResult | None:
        """Attempt the job; None when no host may be tried now, and nothing was done."""
        refusals: list[JobResult] = []
        if slot.fits(job.route, max_deliveries=max_deliveries):
            job_result = await self._deliver(job, slot)
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

    async def _try_host(self, job: message_loader.Job, slot: ConnectionSlot, host: routing.Host) -> JobResult:
        if job.tls_not_required and not host.upstream:
            host = dataclasses.replace(host, tls=self._setting, counted_for=None)
        slot.opening = asyncio.get_running_loop().create_task(self._connect(host))
        try:
            slot.connection = await slot.opening
        except asyncio.CancelledError:
            if not slot.is_ended:
                raise
            return _job_result(job, (ABORTED,) * len(job.claims), host.name, host.address)
        except smtp_connection.ConnectFailed as failure:
            result = failure.result
            if host.upstream and failure.tls_failure is not None:
                result = msgspec.structs.replace(result, cause=values.Cause.CONFIGURATION)
            self._count_failure(host, result)
            refused = _job_result(job, (result,) * len(job.claims), host.name, host.address)
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

    async def _deliver(self, job: message_loader.Job, slot: ConnectionSlot) -> JobResult:
        connection, transaction = slot.connection, job.transaction
        assert connection is not None  # noqa: S101 - the callers have checked
        assert transaction is not None  # noqa: S101 - a job is prepared before it is attempted
        results = await connection.deliver(transaction)
        there = connection.destination
        job_result = _job_result(job, results, there.host, there.address, connection.tls)
        if all(one.verdict is bounces_disposition.Verdict.DELIVERED for one in job_result.dispositions):
            return job_result
        return msgspec.structs.replace(job_result, conversation=connection.conversation)


def _job_result(
    job: message_loader.Job, results: tuple[values.RecipientResult, ...], host: str, address: str, tls: str = ""
) -> JobResult:
    is_upstream = job.route.is_upstream
    dispositions = tuple([bounces_disposition.classify(result, is_upstream=is_upstream) for result in results])
    return JobResult(results, dispositions, host, address, tls)


def _wants_next_host(job: message_loader.Job, job_result: JobResult) -> bool:
    """Whether another host should be tried first: for an urgent job also when this one fails for the moment."""
    return job_result.wants_next_host or (job.is_urgent and job_result.is_transient)


def _is_connection_failure(job_result: JobResult) -> bool:
    """Whether a reused connection was closed or exhausted before the server accepted anything of this message."""
    if all(disposition.reason == SESSION_LIMIT for disposition in job_result.dispositions):
        return True
    result = job_result.results[0]
    if result.permanent or result.in_doubt or not job_result.wants_next_host:
        return False
    return result.reply is None or result.reply.code == CLOSING


def _final_result(refusals: Sequence[JobResult], *, is_complete: bool) -> JobResult | None:
    """The result when every host refused: permanent only if all of them were tried and refused permanently."""
    for refusal in reversed(refusals):
        if any(disposition.verdict is bounces_disposition.Verdict.RETRY for disposition in refusal.dispositions):
            return refusal
    if not refusals or is_complete:
        return refusals[-1] if refusals else None
    # A host that its breaker skipped may accept what the others refuse.
    open_ended = [
        msgspec.structs.replace(one, verdict=bounces_disposition.Verdict.RETRY) for one in refusals[-1].dispositions
    ]
    return msgspec.structs.replace(refusals[-1], dispositions=tuple(open_ended))


class Connector:
    """Opens connections with the settings. Raises ConfigError if the password of an upstream cannot be read."""

    def __init__(self, settings: config.Settings, *, hello_name: str) -> None:
        delivery = settings.delivery
        self._hello_name = hello_name
        self._timeouts = smtp_connection.Timeouts(
            connect=delivery.connect_seconds, reply=delivery.reply_seconds, content=delivery.content_seconds
        )
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
