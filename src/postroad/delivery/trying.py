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

from postroad.delivery import hosts, preparing, routing
from postroad.model import judging
from postroad.network import smtp_connection
from postroad.protocol.smtp import values

CLOSING: Final = 421
SESSION_LIMIT: Final = "session_limit"
Connect = Callable[[routing.Host], Coroutine[Any, Any, smtp_connection.SmtpConnection]]
# The stages of a host that does not say a word.
SILENT: Final = frozenset({values.Stage.CONNECT, values.Stage.BANNER})
GIVEN_UP: Final = values.Result(values.Stage.CONNECT, trouble="the connection was given up on this side")


@dataclass(slots=True, eq=False)
class Link:
    """The connection that a pool's worker keeps, or opens."""

    connection: smtp_connection.SmtpConnection | None = None
    opening: asyncio.Task[smtp_connection.SmtpConnection] | None = None
    is_cut: bool = False

    def fits(self, route: routing.Route, *, most_deliveries: int) -> bool:
        """Whether the connection can carry another message, to a host of this route and under its TLS policy."""
        connection = self.connection
        if connection is None or not connection.is_usable or self.is_worn(most_deliveries=most_deliveries):
            return False
        there = connection.destination
        return any(
            host.address == there.address and host.port == there.port and host.tls == there.tls for host in route.hosts
        )

    def is_worn(self, *, most_deliveries: int) -> bool:
        """Whether the connection has carried as much as one should."""
        return self.connection is not None and self.connection.deliveries >= most_deliveries

    def cut(self) -> None:
        """End at once, and open nothing more; what is under way gets its result from that."""
        self.is_cut = True
        if self.opening is not None:
            self.opening.cancel()
        if self.connection is not None:
            self.connection.abort()

    async def close(self) -> None:
        """Take leave."""
        connection, self.connection = self.connection, None
        if connection is not None:
            await connection.close()


class Attempted(msgspec.Struct, frozen=True):
    """What a job came to: a result and a judgement for each recipient, and who said so."""

    results: tuple[values.Result, ...]
    judgements: tuple[judging.Judgement, ...]
    host: str
    address: str
    tls: str

    @property
    def wants_next_host(self) -> bool:
        """Whether another host should be asked before this counts."""
        return all(judgement.next_host for judgement in self.judgements)

    @property
    def is_undone(self) -> bool:
        """Whether the destination has neither taken nor refused anything."""
        return all(result.reply is None and not result.in_doubt and not result.permanent for result in self.results)

    @property
    def is_silent(self) -> bool:
        """Whether no host could be reached, or none of them said a word."""
        return self.results[0].reply is None and self.results[0].stage in SILENT


class Trying:
    """Brings jobs to hosts."""

    def __init__(self, known: hosts.Hosts, connect: Connect) -> None:
        self._hosts = known
        self._connect = connect

    async def attempt(self, job: preparing.Job, link: Link, *, most_deliveries: int) -> Attempted | None:
        """Try the job; None when no host may be tried now, and then nothing was done."""
        refusals: list[Attempted] = []
        if link.fits(job.route, most_deliveries=most_deliveries):
            attempted = await self._deliver(job, link)
            if not _is_about_the_connection(attempted):
                if not attempted.wants_next_host:
                    return attempted
                refusals.append(attempted)
        # The host of the connection that was open already need not say it twice.
        refused_by = (refusals[0].host, refusals[0].address) if refusals else None
        asked = 0
        for host in self._hosts.usable(job.route):
            if link.is_cut:
                break
            if (host.name, host.address) == refused_by:
                asked += 1
                continue
            await link.close()
            attempted = await self._try_host(job, link, host)
            if not attempted.wants_next_host:
                return attempted
            refusals.append(attempted)
            asked += 1
        return _last_word(refusals, is_complete=asked == len(job.route.hosts))

    async def _try_host(self, job: preparing.Job, link: Link, host: routing.Host) -> Attempted:
        link.opening = asyncio.get_running_loop().create_task(self._connect(host))
        try:
            link.connection = await link.opening
        except asyncio.CancelledError:
            if not link.is_cut:
                raise
            results = (GIVEN_UP,) * len(job.claims)
            return Attempted(results, _judge(results), host.name, host.address, "")
        except smtp_connection.ConnectFailed as failure:
            # Encryption that falls short of one domain's policy says nothing about the host to the other domains.
            if failure.result.reply is None and failure.result.stage is not values.Stage.STARTTLS:
                self._hosts.failed(host)
            else:
                self._hosts.answered(host)
            results = (failure.result,) * len(job.claims)
            return Attempted(results, _judge(results), host.name, host.address, "")
        finally:
            link.opening = None
        self._hosts.answered(host)
        return await self._deliver(job, link)

    async def _deliver(self, job: preparing.Job, link: Link) -> Attempted:
        connection, envelope = link.connection, job.envelope
        assert connection is not None  # noqa: S101 - the callers have just looked
        assert envelope is not None  # noqa: S101 - a job is prepared before it is tried
        results = await connection.deliver(envelope)
        there = connection.destination
        return Attempted(results, _judge(results), there.host, there.address, connection.tls)


def _judge(results: Sequence[values.Result]) -> tuple[judging.Judgement, ...]:
    return tuple(map(judging.judge, results))


def _is_about_the_connection(attempted: Attempted) -> bool:
    """Whether a kept connection was closed or had its share, and the destination has taken nothing of this message."""
    if all(judgement.reason == SESSION_LIMIT for judgement in attempted.judgements):
        return True
    result = attempted.results[0]
    if result.permanent or result.in_doubt or not attempted.wants_next_host:
        return False
    return result.reply is None or result.reply.code == CLOSING


def _last_word(refusals: Sequence[Attempted], *, is_complete: bool) -> Attempted | None:
    """What counts when every host refused: a refusal for good only if all of them said so, and none was left out."""
    for refusal in reversed(refusals):
        if any(judgement.verdict is judging.Verdict.RETRY for judgement in refusal.judgements):
            return refusal
    if not refusals or is_complete:
        return refusals[-1] if refusals else None
    # A host that is left alone by its breaker may take what the others refuse.
    open_ended = [msgspec.structs.replace(one, verdict=judging.Verdict.RETRY) for one in refusals[-1].judgements]
    return msgspec.structs.replace(refusals[-1], judgements=tuple(open_ended))
