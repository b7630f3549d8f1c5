"""Nobody waits for somebody else's destination: hosts that are dead or crawl, with however many recipients behind them.

The three destinations share a port and differ in their addresses. What is asserted are counts: how many recipients of
the bad destinations were touched while all of the good one's were delivered, and how many the engine holds.
"""

import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import Any, NamedTuple

import pytest

from postroad.delivery import dispatcher, provider_queue, recorder
from postroad.model.delivery import adaptive_rate, retry
from postroad.services.operations import operator_jobs
from tests import contexts, dns_server, smtp_peers
from tests.delivery import bulk_queue, engine_harness
from tests.reliability import delivery_harness, profile, service_process, sinks
from tests.storage import samples

# Recipients of each bad destination, ten for each message. `make test` has fewer, but more than the test could try.
BACKLOG = 50_000 if profile.IS_LONG else 5_000
EACH = 10
HEALTHY = 300
DEAD, SLOW, GOOD = "dead.example", "slow.example", "good.example"
SCHEDULE = [60, 600]
# What a destination may hold that has never taken anything: two connections, and the messages that wait for them.
FIRST_MESSAGES = adaptive_rate.FIRST_CONNECTIONS * provider_queue.JOBS_PER_CONNECTION
# Messages that are tried before a dead host is left alone.
PROBES = adaptive_rate.FAILURES_TO_OPEN + adaptive_rate.FIRST_CONNECTIONS
EXPECTED = (
    "SELECT status, attempt_count, last_smtp_response, COUNT(*) FROM recipients WHERE domain = $1 GROUP BY 1, 2, 3"
)


class Expected(NamedTuple):
    """How some recipients stand."""

    status: str
    attempts: int
    response: str | None
    recipients: int


class QueueHarness(NamedTuple):
    """A store with a good, a dead and a slow destination around it."""

    harness: delivery_harness.DeliveryHarness
    clock: contexts.Clock
    sink: sinks.Sink
    tarpit: smtp_peers.Peer

    async def pile(self, domain: str, count: int, *, each: int = EACH) -> list[str]:
        return await bulk_queue.fill(self.harness.ctx, self.harness.account_id, domain, count=count, each=each)

    async def expected(self, domain: str) -> list[Expected]:
        store = self.harness.ctx.store
        samples.teach(store, expected=EXPECTED.replace("$1", "?1") if store.dialect == "sqlite" else EXPECTED)
        async with store.scanning() as tx:
            return [Expected(*row) for row in await tx.fetch("test.expected", domain)]

    async def tried(self, domain: str) -> int:
        """How many recipients of a domain were tried, or even ended."""
        expected = await self.expected(domain)
        return sum(fate.recipients for fate in expected if fate.attempts or fate.status != "queued")


@contextlib.asynccontextmanager
async def queue_harness(url: str) -> AsyncIterator[QueueHarness]:
    good, dead, slow = engine_harness.loopback_addresses(3)
    clock = contexts.Clock()
    zones = {
        **engine_harness.zones_of({"mx.good.example": good}, domain=GOOD),
        **engine_harness.zones_of({"mx.dead.example": dead}, domain=DEAD),
        **engine_harness.zones_of({"mx.slow.example": slow}, domain=SLOW),
    }
    drip = {"BANNER": smtp_peers.Drip("220 in a minute or two, please wait", 0.5)}
    async with (
        sinks.running(good) as sink,
        smtp_peers.serving(drip, host=slow, port=sink.port) as tarpit,
        dns_server.running(zones) as dns,
    ):
        tables = delivery_harness.sections(
            sink, is_direct=True, resolvers=[dns.address], retry_seconds=SCHEDULE, grace_seconds=1
        )
        async with delivery_harness.open_harness(url, tables, clock=clock) as harness:
            yield QueueHarness(harness, clock, sink, tarpit)


async def test_bad_destinations_hold_up_nobody_however_many_recipients_they_have(url: str) -> None:
    async with queue_harness(url) as around:
        await around.pile(DEAD, BACKLOG)
        await around.pile(SLOW, BACKLOG)
        async with engine_harness.running(around.harness.ctx) as (running, _):
            for batch in range(3):
                # The first come together with the bad ones, the others when the engine knows those.
                addresses = await around.pile(GOOD, HEALTHY, each=1)
                await around.sink.got(HEALTHY * (batch + 1))
                assert set(around.sink.recipients[-HEALTHY:]) == set(addresses)
                assert await around.tried(DEAD) <= PROBES * EACH
                assert await around.tried(SLOW) == 0
                assert len(running._leases) <= FIRST_MESSAGES * EACH * 2 + HEALTHY
            assert around.tarpit.connections <= adaptive_rate.FIRST_CONNECTIONS
            assert await around.tried(DEAD) > 0
        # After a stop everything is there for whoever comes next.
        states = await around.harness.states()
        assert states["sending"] == 0
        assert states["ready"] + states["waiting"] == 2 * BACKLOG
        assert states["waiting"] <= PROBES * EACH


async def test_recipients_of_a_dead_destination_fail_with_a_reason_when_their_time_is_over(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatcher, "EXPIRY_SEARCH_SECONDS", 0.01)
    batches: list[int] = []
    decided = recorder.Recorder.record_without_attempt

    async def count(self: recorder.Recorder, claims: Sequence[Any], *arguments: Any) -> None:
        batches.append(len(claims))
        await decided(self, claims, *arguments)

    monkeypatch.setattr(recorder.Recorder, "record_without_attempt", count)
    async with queue_harness(database_url) as around, engine_harness.running(around.harness.ctx) as (running, _):
        await around.pile(DEAD, 1_000)

        async def is_left_alone() -> bool:
            return len(running._leases) == 0 and await around.tried(DEAD) >= adaptive_rate.FAILURES_TO_OPEN

        await service_process.until(is_left_alone)
        # Their time is not over yet, whatever else is delivered.
        around.clock.pass_seconds(sum(SCHEDULE))
        await around.pile(GOOD, 1)
        await around.sink.got(1)
        assert {fate.status for fate in await around.expected(DEAD)} == {"queued", "deferred"}

        around.clock.pass_seconds(retry.lifetime(SCHEDULE) / contexts.SECOND)
        around.harness.ctx.mail_wakeup.set()
        await around.harness.finished()
        expected = await around.expected(DEAD)
        assert {fate.status for fate in expected} == {"failed"}
        assert sum(fate.recipients for fate in expected) == 1_000
        for fate in expected:
            assert fate.response is not None
            assert f"the mail servers of {DEAD} were unreachable until the retry schedule ended" in fate.response
            assert "refused" in fate.response.lower()
        assert len(batches) > 1
        assert max(batches) <= dispatcher.MAX_CLAIMS_PER_STEP
        assert (await operator_jobs.check_consistency(around.harness.ctx)).findings == []
