"""Every moment of claiming and of recording, one after the other: the process dies there, or the store fails there.

Between any two statements, at any byte of the commit, and after it: a claim is counted and held or nothing happened,
the attempt of a lost worker is written down or is still to be, and a result is recorded with its line in the log or not
at all. Whoever comes next finds the books in order and goes on.
"""

import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Callable

import msgspec
import pytest

from postroad.services import context, receivers, telling
from postroad.storage import group_commit, webhook_deliveries, webhooks
from postroad.webhooks import recording
from tests import contexts
from tests.reliability import engines, faults
from tests.reliability import telling as desks
from tests.reliability.faults import Moment
from tests.webhooks import offices

MakeEngine = Callable[[], engines.Engine]
Logs = list[list[str | None]]

# More statements than either transaction has: the last ones come before its commit.
STATEMENTS = range(7)
SHARES = tuple(number / 5 for number in range(6))
TROUBLES = (
    *((Moment.BEFORE, count, 0.0) for count in STATEMENTS),
    *((Moment.DURING, 0, share) for share in SHARES),
)
DEATHS = (*TROUBLES, (Moment.AFTER, 0, 0.0))
# It can be saved. What is told is sent nowhere: the guard refuses the other one.
PUBLIC_URL = "https://192.88.98.1/hook"
BLOCKED_URL = "https://127.0.0.1/hook"
LEASE_SECONDS = 30
ANSWERS = (receivers.Answer(status_code=200, body="thanks"), receivers.Answer(status_code=500, body="broken"))


class Office:
    """A process on a store for accidents, with an account that wants to be told."""

    def __init__(self, engine: engines.Engine) -> None:
        self.engine = engine
        self.clock = contexts.Clock()

    async def open(self) -> None:
        await self.engine.open()
        self.process = await engines.Process.start(self.engine.url, clock=self.clock)
        endpoint = await offices.Office(self.process.ctx, self.clock).endpoint(PUBLIC_URL)
        self.endpoint = msgspec.structs.replace(endpoint, url=BLOCKED_URL)
        async with self.process.ctx.store.transaction() as tx:
            await webhooks.update(tx, self.endpoint)

    async def close(self) -> None:
        await self.process.stop()
        await self.engine.close()

    @property
    def desk(self) -> desks.Desk:
        """What is told, as the process that lives now sees it."""
        return desks.Desk(self.process.ctx, self.endpoint)

    @property
    def parts(self) -> offices.Parts:
        """An engine of the process that lives now."""
        return offices.Office(self.process.ctx, self.clock).parts()

    async def claim(self, worker: str) -> list[webhook_deliveries.Claimed]:
        """Take everything that is ready."""
        until = self.clock.now + LEASE_SECONDS * contexts.SECOND
        async with self.process.ctx.store.transaction() as tx:
            return await webhook_deliveries.claim(tx, [(self.endpoint.id, 100)], lease_until=until, worker=worker)

    async def restart(self, fault: faults.Fault) -> None:
        """The process dies now, if it has not done so, and another one starts."""
        await self.process.store.die(fault)
        await self.process.stop()
        await self.engine.bury()
        self.process = await engines.Process.start(self.engine.url, clock=self.clock)
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
            await parts.attempting.finish(grace_seconds=offices.PATIENCE_SECONDS)
        await parts.finish()
        await self.desk.audit()
        assert not {state for state, _, is_held in await self.desk.standings() if is_held or state == "ready"}


@contextlib.asynccontextmanager
async def opened(make_engine: MakeEngine) -> AsyncIterator[Office]:
    office = Office(make_engine())
    await office.open()
    try:
        yield office
    finally:
        await office.close()


async def test_a_death_while_claiming_has_claimed_and_counted_or_nothing_happened(make_engine: MakeEngine) -> None:
    for moment, statements, share in DEATHS:
        async with opened(make_engine) as office:
            # Two were left by a worker that was lost, and two are new; a new account has two places.
            await office.desk.write(2)
            await office.claim("lost")
            office.clock.pass_seconds(LEASE_SECONDS + 1)
            await office.desk.write(2)
            fault = office.engine.death(office.process, moment, statements=statements, share=share)
            office.process.store.expect(fault)
            parts = office.parts
            with pytest.raises(group_commit.TROUBLE):
                await parts.dispatching.step()
            await parts.finish()
            await office.restart(fault)
            standings, logs = await office.desk.standings(), await office.logs()
            is_claimed = standings == {("waiting", 2, True): 2, ("ready", 0, False): 2}
            assert is_claimed or standings == {("waiting", 1, True): 2, ("ready", 0, False): 2}
            assert logs == ([["interrupted"], ["interrupted"], [], []] if is_claimed else [[], [], [], []])
            assert moment is Moment.DURING or is_claimed == (moment is Moment.AFTER)
            await office.take_over()
            lost = ["interrupted"] * (2 if is_claimed else 1)
            assert await office.logs() == [[*lost, "blocked_destination"]] * 2 + [["blocked_destination"]] * 2


async def test_a_death_while_recording_has_recorded_and_logged_or_nothing_happened(make_engine: MakeEngine) -> None:
    for moment, statements, share in DEATHS:
        async with opened(make_engine) as office:
            await office.desk.write(len(ANSWERS))
            claims = await office.claim("dead")
            fault = office.engine.death(office.process, moment, statements=statements, share=share)
            office.process.store.expect(fault)
            with contextlib.suppress(*group_commit.TROUBLE):
                async with office.process.ctx.store.transaction() as tx:
                    await recording.record(
                        tx, [ended_of(office.process.ctx, *one) for one in zip(claims, ANSWERS, strict=True)]
                    )
            await office.restart(fault)
            is_recorded = await all_or_nothing(office)
            assert moment is Moment.DURING or is_recorded == (moment is Moment.AFTER)
            await office.take_over()
            assert [len(log) for log in await office.logs()] == ([1, 2] if is_recorded else [2, 2])


async def test_a_store_that_fails_while_recording_is_told_again_and_records_once(make_engine: MakeEngine) -> None:
    said: Counter[str] = Counter()
    for moment, statements, share in TROUBLES:
        async with opened(make_engine) as office:
            fault = office.engine.trouble(office.process, moment, statements=statements, share=share)
            said.update(await record_in_trouble(office, fault))
            await office.desk.audit()
            assert await all_or_nothing(office)
    assert said["webhook_result_not_recorded_yet"] > 1


async def record_in_trouble(office: Office, fault: faults.Fault) -> list[str]:
    """Record while the store fails, until it works again; returns what the log says."""
    await office.desk.write(len(ANSWERS))
    claims, told = await office.claim(offices.WORKER), offices.Office(office.process.ctx, office.clock)
    results = told.parts().recording
    office.process.store.expect(fault)
    for claimed, answer in zip(claims, ANSWERS, strict=True):
        results.attempted(claimed, BLOCKED_URL, attempted(office.process.ctx, answer))
    await offices.until(lambda: bool(told.log))
    assert office.process.store.has_struck
    await office.engine.settle()
    await results.close(seconds=offices.PATIENCE_SECONDS)
    return told.events()


async def all_or_nothing(office: Office) -> bool:
    """Whether the results are recorded; if not, the worker still has everything."""
    standings, logs = await office.desk.standings(), await office.logs()
    if any(logs):
        assert standings == {("succeeded", 1, False): 1, ("waiting", 1, False): 1}
        assert logs == [[None], [None]]
    else:
        assert standings == {("waiting", 1, True): len(ANSWERS)}
    return any(logs)


def attempted(ctx: context.Context, answer: receivers.Answer) -> telling.Attempted:
    return telling.Attempted(started_at=ctx.clock(), duration=5, answer=answer)


def ended_of(ctx: context.Context, claimed: webhook_deliveries.Claimed, answer: receivers.Answer) -> recording.Ended:
    """What the dead worker was about to record."""
    now, state = ctx.clock(), webhook_deliveries.State
    result = webhook_deliveries.Result(
        key=claimed.key,
        worker="dead",
        attempt_count=claimed.attempt_count,
        url=BLOCKED_URL,
        state=state.SUCCEEDED if answer.succeeded else state.WAITING,
        due_at=now + 5 * contexts.SECOND,
        ended_at=now if answer.succeeded else None,
    )
    return recording.Ended(claimed, result, telling.log_entry(claimed.key, 1, attempted(ctx, answer)))
