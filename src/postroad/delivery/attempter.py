"""One job, host after host, until one of them decides (docs/interface.md, "Recipient results"; RFC 5321 section 5.1).

A connection that is open already to a host of the route is used first. One that the destination closed while it was
idle says nothing about the message: a new one is opened. A host that refuses before the recipients are named is not the
last word; the next one is asked. Only when all of them refuse for good is the refusal final.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from postroad.delivery import hosts, message_loader, routing
from postroad.model.bounces import disposition as bounces_disposition
from postroad.network import smtp_connection
from postroad.protocol.smtp import values

CLOSING: Final = 421
SESSION_LIMIT: Final = "session_limit"
Connect = Callable[[routing.Host], Coroutine[Any, Any, smtp_connection.SmtpConnection]]
# The stages of a host that does not say a word.
UNRESPONSIVE_STAGES: Final = frozenset({values.Stage.CONNECT, values.Stage.BANNER})
ABORTED: Final = values.RecipientResult(values.Stage.CONNECT, detail="the connection was given up on this side")


@dataclass(slots=True, eq=False)
class ConnectionSlot:
    """The connection that a pool's worker keeps, or opens."""

    connection: smtp_connection.SmtpConnection | None = None
    opening: asyncio.Task[smtp_connection.SmtpConnection] | None = None
    is_aborted: bool = False

    def fits(self, route: routing.Route, *, max_deliveries: int) -> bool:
        """Whether the connection can carry another message, to a host of this route and under its TLS policy."""
        connection = self.connection
        if connection is None or not connection.is_usable or self.is_exhausted(max_deliveries=max_deliveries):
            return False
        there = connection.destination
        return any(
            host.address == there.address and host.port == there.port and host.tls == there.tls for host in route.hosts
        )

    def is_exhausted(self, *, max_deliveries: int) -> bool:
        """Whether the connection has carried as much as one should."""
        return self.connection is not None and self.connection.deliveries >= max_deliveries

    def abort(self) -> None:
        """End at once, and open nothing more; what is under way gets its result from that."""
        self.is_aborted = True
        if self.opening is not None:
            self.opening.cancel()
        if self.connection is not None:
            self.connection.abort()

    async def close(self) -> None:
        """Take leave."""
        connection, self.connection = self.connection, None
        if connection is not None:
            await connection.close()


class JobResult(msgspec.Struct, frozen=True):
    """What a job came to: a result and a judgement for each recipient, and who said so."""

    results: tuple[values.RecipientResult, ...]
    dispositions: tuple[bounces_disposition.Disposition, ...]
    host: str
    address: str
    tls: str

    @property
    def wants_next_host(self) -> bool:
        """Whether another host should be asked before this counts."""
        return all(disposition.next_host for disposition in self.dispositions)

    @property
    def had_no_effect(self) -> bool:
        """Whether the destination has neither taken nor refused anything."""
        return all(result.reply is None and not result.in_doubt and not result.permanent for result in self.results)

    @property
    def is_unresponsive(self) -> bool:
        """Whether no host could be reached, or none of them said a word."""
        return self.results[0].reply is None and self.results[0].stage in UNRESPONSIVE_STAGES


class Attempter:
    """Brings jobs to hosts."""

    def __init__(self, known_hosts: hosts.Hosts, connect: Connect) -> None:
        self._hosts = known_hosts
        self._connect = connect

    async def attempt(self, job: message_loader.Job, slot: ConnectionSlot, *, max_deliveries: int) -> JobResult | None:
        """Try the job; None when no host may be tried now, and then nothing was done."""
        refusals: list[JobResult] = []
        if slot.fits(job.route, max_deliveries=max_deliveries):
            job_result = await self._deliver(job, slot)
            if not _is_connection_failure(job_result):
                if not job_result.wants_next_host:
                    return job_result
                refusals.append(job_result)
        # The host of the connection that was open already need not say it twice.
        refused_by = (refusals[0].host, refusals[0].address) if refusals else None
        asked = 0
        for host in self._hosts.usable(job.route):
            if slot.is_aborted:
                break
            if (host.name, host.address) == refused_by:
                asked += 1
                continue
            await slot.close()
            job_result = await self._try_host(job, slot, host)
            if not job_result.wants_next_host:
                return job_result
            refusals.append(job_result)
            asked += 1
        return _final_result(refusals, is_complete=asked == len(job.route.hosts))

    async def _try_host(self, job: message_loader.Job, slot: ConnectionSlot, host: routing.Host) -> JobResult:
        slot.opening = asyncio.get_running_loop().create_task(self._connect(host))
        try:
            slot.connection = await slot.opening
        except asyncio.CancelledError:
            if not slot.is_aborted:
                raise
            results = (ABORTED,) * len(job.claims)
            return JobResult(results, _classify(results), host.name, host.address, "")
        except smtp_connection.ConnectFailed as failure:
            # Encryption that falls short of one domain's policy says nothing about the host to the other domains.
            if failure.result.reply is None and failure.result.stage is not values.Stage.STARTTLS:
                self._hosts.failed(host)
            else:
                self._hosts.answered(host)
            results = (failure.result,) * len(job.claims)
            return JobResult(results, _classify(results), host.name, host.address, "")
        finally:
            slot.opening = None
        self._hosts.answered(host)
        return await self._deliver(job, slot)

    async def _deliver(self, job: message_loader.Job, slot: ConnectionSlot) -> JobResult:
        connection, transaction = slot.connection, job.transaction
        assert connection is not None  # noqa: S101 - the callers have just looked
        assert transaction is not None  # noqa: S101 - a job is prepared before it is tried
        results = await connection.deliver(transaction)
        there = connection.destination
        return JobResult(results, _classify(results), there.host, there.address, connection.tls)


def _classify(results: Sequence[values.RecipientResult]) -> tuple[bounces_disposition.Disposition, ...]:
    return tuple(map(bounces_disposition.classify, results))


def _is_connection_failure(job_result: JobResult) -> bool:
    """Whether a kept connection was closed or had its share, and the destination has taken nothing of this message."""
    if all(disposition.reason == SESSION_LIMIT for disposition in job_result.dispositions):
        return True
    result = job_result.results[0]
    if result.permanent or result.in_doubt or not job_result.wants_next_host:
        return False
    return result.reply is None or result.reply.code == CLOSING


def _final_result(refusals: Sequence[JobResult], *, is_complete: bool) -> JobResult | None:
    """What counts when every host refused: a refusal for good only if all of them said so, and none was left out."""
    for refusal in reversed(refusals):
        if any(disposition.verdict is bounces_disposition.Verdict.RETRY for disposition in refusal.dispositions):
            return refusal
    if not refusals or is_complete:
        return refusals[-1] if refusals else None
    # A host that is left alone by its breaker may take what the others refuse.
    open_ended = [
        msgspec.structs.replace(one, verdict=bounces_disposition.Verdict.RETRY) for one in refusals[-1].dispositions
    ]
    return msgspec.structs.replace(refusals[-1], dispositions=tuple(open_ended))
