"""Nobody waits for somebody else's destination: hosts that are dead or crawl, with however many recipients behind them.

The three destinations share a port and differ in their addresses. What is asserted are counts: how many recipients of
the bad destinations were touched while all of the good one's were delivered, and how many the engine holds.
"""

import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import Any, NamedTuple

import pytest

from postroad.delivery import dispatching, pool, recording
from postroad.model import breaker, pace, retry
from postroad.services import audit
from tests import contexts, dns_server, smtp_peers
from tests.delivery import engines, piles
from tests.reliability import delivering, serving, sinks
from tests.storage import samples

# A hundred thousand recipients of two destinations, ten for each message.
PILE = 50_000
EACH = 10
HEALTHY = 300
DEAD, SLOW, GOOD = "dead.example", "slow.example", "good.example"
SCHEDULE = [60, 600]
# What a destination may hold that has never taken anything: two connections, and the messages that wait for them.
FIRST_MESSAGES = pace.FIRST_CONNECTIONS * pool.JOBS_A_CONNECTION
# Messages that are tried before a dead host is left alone.
PROBES = breaker.FAILURES_TO_OPEN + pace.FIRST_CONNECTIONS
FATES = "SELECT status, attempt_count, last_smtp_response, COUNT(*) FROM recipients WHERE domain = $1 GROUP BY 1, 2, 3"


class Fate(NamedTuple):
    """How some recipients stand."""

    status: str
    attempts: int
    response: str | None
    recipients: int


class World(NamedTuple):
    """A store with a good, a dead and a slow destination around it."""

    post: delivering.Post
    clock: contexts.Clock
    sink: sinks.Sink
    tarpit: smtp_peers.Peer

    async def pile(self, domain: str, count: int, *, each: int = EACH) -> list[str]:
        return await piles.pile(self.post.ctx, self.post.account_id, domain, count=count, each=each)

    async def fates(self, domain: str) -> list[Fate]:
        store = self.post.ctx.store
        samples.teach(store, fates=FATES.replace("$1", "?1") if store.dialect == "sqlite" else FATES)
        async with store.scanning() as tx:
            return [Fate(*row) for row in await tx.fetch("test.fates", domain)]

    async def tried(self, domain: str) -> int:
        """How many recipients of a domain were tried, or even ended."""
        fates = await self.fates(domain)
        return sum(fate.recipients for fate in fates if fate.attempts or fate.status != "queued")


@contextlib.asynccontextmanager
async def world(url: str) -> AsyncIterator[World]:
    good, dead, slow = engines.loopback_addresses(3)
    clock = contexts.Clock()
    zones = {
        **engines.zones_of({"mx.good.example": good}, domain=GOOD),
        **engines.zones_of({"mx.dead.example": dead}, domain=DEAD),
        **engines.zones_of({"mx.slow.example": slow}, domain=SLOW),
    }
    drip = {"BANNER": smtp_peers.Drip("220 in a minute or two, please wait", 0.5)}
    async with (
        sinks.running(good) as sink,
        smtp_peers.serving(drip, host=slow, port=sink.port) as tarpit,
        dns_server.running(zones) as dns,
    ):
        tables = delivering.sections(
            sink, smarthost="", resolvers=[dns.address], retry_seconds=SCHEDULE, grace_seconds=1
        )
        async with delivering.post_office(url, tables, clock=clock) as post:
            yield World(post, clock, sink, tarpit)


async def test_a_hundred_thousand_recipients_of_bad_destinations_hold_up_nobody(url: str) -> None:
    async with world(url) as around:
        await around.pile(DEAD, PILE)
        await around.pile(SLOW, PILE)
        async with engines.running(around.post.ctx) as (running, _):
            for batch in range(3):
                # The first come together with the bad ones, the others when the engine knows those.
                addresses = await around.pile(GOOD, HEALTHY, each=1)
                await around.sink.got(HEALTHY * (batch + 1))
                assert set(around.sink.recipients[-HEALTHY:]) == set(addresses)
                assert await around.tried(DEAD) <= PROBES * EACH
                assert await around.tried(SLOW) == 0
                assert len(running._held) <= FIRST_MESSAGES * EACH * 2 + HEALTHY
            assert around.tarpit.connections <= pace.FIRST_CONNECTIONS
            assert await around.tried(DEAD) > 0
        # After a stop everything is there for whoever comes next.
        states = await around.post.states()
        assert states["sending"] == 0
        assert states["ready"] + states["waiting"] == 2 * PILE
        assert states["waiting"] <= PROBES * EACH


async def test_recipients_of_a_dead_destination_fail_with_a_reason_when_their_time_is_over(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatching, "EXPIRY_SECONDS", 0.01)
    batches: list[int] = []
    decided = recording.Recording.decided

    async def count(self: recording.Recording, claims: Sequence[Any], *arguments: Any) -> None:
        batches.append(len(claims))
        await decided(self, claims, *arguments)

    monkeypatch.setattr(recording.Recording, "decided", count)
    async with world(database_url) as around, engines.running(around.post.ctx) as (running, _):
        await around.pile(DEAD, 1_000)

        async def is_left_alone() -> bool:
            return len(running._held) == 0 and await around.tried(DEAD) >= breaker.FAILURES_TO_OPEN * EACH

        await serving.until(is_left_alone)
        # Their time is not over yet, whatever else is delivered.
        around.clock.pass_seconds(sum(SCHEDULE))
        await around.pile(GOOD, 1)
        await around.sink.got(1)
        assert {fate.status for fate in await around.fates(DEAD)} == {"queued", "deferred"}

        around.clock.pass_seconds(retry.lifetime(SCHEDULE) / contexts.SECOND)
        around.post.ctx.arrivals.set()
        await around.post.finished()
        fates = await around.fates(DEAD)
        assert {fate.status for fate in fates} == {"failed"}
        assert sum(fate.recipients for fate in fates) == 1_000
        for fate in fates:
            assert fate.response is not None
            assert f"the mail servers of {DEAD} did not answer in all the time there was" in fate.response
            assert "refused" in fate.response.lower()
        assert len(batches) > 1
        assert max(batches) <= dispatching.CLAIMS
        assert (await audit.run(around.post.ctx)).findings == []
