"""Every moment of claiming and of recording, one after the other: the process dies there, or the store fails there.

Between any two statements, at any byte of the commit, and after it: a claim is counted and held or nothing happened,
the attempt of a lost worker is written down or is still to be, and a result is recorded with its line in the log or not
at all. The next process finds a consistent store and goes on.
"""

import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Callable

import msgspec
import pytest

from postroad import context
from postroad.network.http import guarded_client as webhook_client
from postroad.services.webhooks import signed_requests as webhook_attempt
from postroad.storage.engine import store
from postroad.storage.mail import webhooks
from postroad.webhooks import engine as webhooks_engine
from tests import contexts
from tests.reliability import crashable_stores, faults, webhook_processes
from tests.reliability.faults import Moment
from tests.storage import webhook_samples
from tests.webhooks import webhook_harness

MakeEngine = Callable[[], crashable_stores.Engine]
Logs = list[list[str | None]]

# More statements than either transaction has: the last ones come before its commit.
STATEMENTS = 7
# It can be saved. Nothing is sent: the guard refuses the other one.
PUBLIC_URL = "https://192.88.98.1/hook"
BLOCKED_URL = "https://127.0.0.1/hook"
LEASE_SECONDS = 30
ANSWERS = (
    webhook_client.WebhookResponse(status_code=200, body="thanks"),
    webhook_client.WebhookResponse(status_code=500, body="broken"),
)


class CrashHarness(crashable_stores.CrashHarness):
    """With an account that has an endpoint."""

    async def open(self) -> None:
        await super().open()
        endpoint = await webhook_harness.WebhookHarness(self.process.ctx, self.clock).endpoint(PUBLIC_URL)
        self.endpoint = msgspec.structs.replace(endpoint, url=BLOCKED_URL)
        async with self.process.ctx.store.transaction() as tx:
            await webhooks.update(tx, self.endpoint)

    @property
    def desk(self) -> webhook_processes.EndpointHarness:
        """The deliveries, as the process that is running now sees them."""
        return webhook_processes.EndpointHarness(self.process.ctx, self.endpoint)

    @property
    def parts(self) -> webhook_harness.Parts:
        """An engine of the process that lives now."""
        return webhook_harness.WebhookHarness(self.process.ctx, self.clock).parts()

    async def claim(self, worker: str) -> list[webhooks.Claimed]:
        """Take everything that is ready."""
        until = self.clock.now + LEASE_SECONDS * contexts.SECOND
        async with self.process.ctx.store.transaction() as tx:
            return await webhooks.claim(tx, [(self.endpoint.id, 100)], lease_until=until, worker=worker)

    async def restart(self, fault: faults.Fault) -> None:
        await super().restart(fault)
        await self.desk.audit()

    async def logs(self) -> Logs:
        """Each delivery's attempts: the codes of their errors, or None."""
        return [
            [attempt.error and attempt.error.partition(":")[0] for attempt in log] for log in await self.desk.attempts()
        ]

    async def take_over(self) -> None:
        """Leases end, and the process that lives now tries what is left. Nothing stays with the dead."""
        self.clock.pass_seconds(LEASE_SECONDS + 1)
        parts = self.parts
        for _ in range(len(await self.desk.deliveries())):
            await parts.dispatching.step()
            await parts.attempting.finish(grace_seconds=webhook_harness.TIMEOUT_SECONDS)
        await parts.finish()
        await self.desk.audit()
        assert not {
            state for state, _, is_held in await self.desk.statuses_and_attempts() if is_held or state == "ready"
        }


@contextlib.asynccontextmanager
async def opened(make_engine: MakeEngine) -> AsyncIterator[CrashHarness]:
    office = CrashHarness(make_engine())
    await office.open()
    try:
        yield office
    finally:
        await office.close()


async def test_a_death_while_claiming_has_claimed_and_counted_or_nothing_happened(make_engine: MakeEngine) -> None:
    for moment, statements, share in faults.deaths(STATEMENTS):
        async with opened(make_engine) as office:
            # Two were left by a worker that was lost, and two are new; a new account has two places.
            await office.desk.write(2)
            await office.claim("lost")
            office.clock.pass_seconds(LEASE_SECONDS + 1)
            await office.desk.write(2)
            fault = office.engine.death(office.process, moment, statements=statements, share=share)
            office.process.store.expect(fault)
            parts = office.parts
            with pytest.raises(store.UNAVAILABLE):
                await parts.dispatching.step()
            await parts.finish()
            await office.restart(fault)
            statuses_and_attempts, logs = await office.desk.statuses_and_attempts(), await office.logs()
            is_claimed = statuses_and_attempts == {("waiting", 2, True): 2, ("ready", 0, False): 2}
            assert is_claimed or statuses_and_attempts == {("waiting", 1, True): 2, ("ready", 0, False): 2}
            assert logs == ([["interrupted"], ["interrupted"], [], []] if is_claimed else [[], [], [], []])
            assert moment is Moment.DURING or is_claimed == (moment is Moment.AFTER)
            await office.take_over()
            lost = ["interrupted"] * (2 if is_claimed else 1)
            assert await office.logs() == [[*lost, "blocked_destination"]] * 2 + [["blocked_destination"]] * 2


async def test_a_death_while_recording_has_recorded_and_logged_or_nothing_happened(make_engine: MakeEngine) -> None:
    for moment, statements, share in faults.deaths(STATEMENTS):
        async with opened(make_engine) as office:
            await office.desk.write(len(ANSWERS))
            claims = await office.claim("dead")
            fault = office.engine.death(office.process, moment, statements=statements, share=share)
            office.process.store.expect(fault)
            with contextlib.suppress(*store.UNAVAILABLE):
                async with office.process.ctx.store.transaction() as tx:
                    await webhooks_engine.record(
                        tx, [ended_of(office.process.ctx, *one) for one in zip(claims, ANSWERS, strict=True)]
                    )
            await office.restart(fault)
            is_recorded = await all_or_nothing(office)
            assert moment is Moment.DURING or is_recorded == (moment is Moment.AFTER)
            await office.take_over()
            assert [len(log) for log in await office.logs()] == ([1, 2] if is_recorded else [2, 2])


async def test_a_store_that_fails_while_recording_is_retried_and_records_once(make_engine: MakeEngine) -> None:
    said: Counter[str] = Counter()
    for moment, statements, share in faults.failures(STATEMENTS):
        async with opened(make_engine) as office:
            fault = office.engine.trouble(office.process, moment, statements=statements, share=share)
            said.update(await record_during_failure(office, fault))
            await office.desk.audit()
            assert await all_or_nothing(office)
    assert said["webhook_result_recording_deferred"] > 1


async def record_during_failure(office: CrashHarness, fault: faults.Fault) -> list[str]:
    """Record while the store fails, until it works again; returns what the log says."""
    await office.desk.write(len(ANSWERS))
    claims, harness = (
        await office.claim(webhook_harness.WORKER),
        webhook_harness.WebhookHarness(office.process.ctx, office.clock),
    )
    results = harness.parts().recorder
    office.process.store.expect(fault)
    for claimed, answer in zip(claims, ANSWERS, strict=True):
        results.record_attempt(claimed, webhook_samples.webhook(url=BLOCKED_URL), attempted(office.process.ctx, answer))
    await webhook_harness.until(lambda: bool(harness.log))
    assert office.process.store.has_struck
    await office.engine.settle()
    await results.close(seconds=webhook_harness.TIMEOUT_SECONDS)
    return harness.events()


async def all_or_nothing(office: CrashHarness) -> bool:
    """Whether the results are recorded; if not, the worker still has everything."""
    statuses_and_attempts, logs = await office.desk.statuses_and_attempts(), await office.logs()
    if any(logs):
        assert statuses_and_attempts == {("succeeded", 1, False): 1, ("waiting", 1, False): 1}
        assert logs == [[None], [None]]
    else:
        assert statuses_and_attempts == {("waiting", 1, True): len(ANSWERS)}
    return any(logs)


def attempted(ctx: context.Context, answer: webhook_client.WebhookResponse) -> webhook_attempt.AttemptResult:
    return webhook_attempt.AttemptResult(started_at=ctx.clock(), duration=5, response=answer)


def ended_of(
    ctx: context.Context, claimed: webhooks.Claimed, answer: webhook_client.WebhookResponse
) -> webhooks_engine.CompletedAttempt:
    """What the dead worker was about to record."""
    now, state = ctx.clock(), webhooks.State
    result = webhooks.DeliveryUpdate(
        key=claimed.key,
        worker="dead",
        attempt_count=claimed.attempt_count,
        url=BLOCKED_URL,
        state=state.SUCCEEDED if answer.succeeded else state.WAITING,
        due_at=now + 5 * contexts.SECOND,
        ended_at=now if answer.succeeded else None,
    )
    return webhooks_engine.CompletedAttempt(
        claimed,
        webhook_samples.webhook(url=BLOCKED_URL),
        result,
        webhook_attempt.attempt_row(claimed.key, 1, attempted(ctx, answer)),
    )
