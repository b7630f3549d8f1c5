"""Every moment of recording results, one after the other: the process dies there, or the store fails there.

Between any two statements, at any byte of the commit, and after it: the results are recorded in every table or in none,
and then the recipients are still under the lease of the dead, and are tried again when it ends.
"""

from collections import Counter
from collections.abc import AsyncIterator, Callable

import pytest

from postroad.model import identifiers, judging
from postroad.services import context, outcomes
from postroad.storage import attempts, group_commit, queue
from tests import contexts
from tests.delivery import piles
from tests.reliability import delivering, engines, faults
from tests.reliability.faults import Moment

# More statements than the recording transaction has: the last ones come before its commit.
STATEMENTS = range(12)
SHARES = tuple(number / 10 for number in range(11))
VERDICTS = (judging.Verdict.DELIVERED, judging.Verdict.BOUNCED, judging.Verdict.FAILED, judging.Verdict.RETRY)
STATUSES = {"delivered": 1, "bounced": 1, "failed": 1, "deferred": 1}
DOMAIN = "example.net"


class Office:
    """A process on a store for accidents, and the mail that it is about to record."""

    def __init__(self, engine: engines.Engine) -> None:
        self.engine = engine
        self.clock = contexts.Clock()
        self.seen: Counter[str] = Counter()
        self._number = 0

    async def open(self) -> None:
        await self.engine.open()
        self.process = await engines.Process.start(self.engine.url, clock=self.clock)

    async def close(self) -> None:
        await self.process.stop()
        await self.engine.close()

    async def sent(self) -> list[outcomes.Outcome]:
        """A message of a new account was sent to four recipients, with four fates."""
        self._number += 1
        ctx = self.process.ctx
        account_id = await piles.new_account(ctx, f"Shop {self._number}", domain=f"shop{self._number}.example")
        await piles.pile(ctx, account_id, DOMAIN, count=len(VERDICTS), each=len(VERDICTS))
        async with ctx.store.transaction() as tx:
            wanted = [queue.Wanted(queue.lane_of(DOMAIN, account_id), 10)]
            until = self.clock.now + 60 * contexts.SECOND
            claims = await queue.claim(tx, wanted, lease_until=until, worker="dead")
        return [outcome_of(ctx, claim, verdict) for claim, verdict in zip(claims, VERDICTS, strict=True)]

    async def record_and_die(self, fault: faults.Fault, ended: list[outcomes.Outcome]) -> bool:
        """Whether the results were recorded by the process that died."""
        self.process.store.expect(fault)
        try:
            await self.process.ctx.record.submit(ended)
        except group_commit.TROUBLE:
            assert self.process.store.has_struck
        await self.process.store.die(fault)
        await self.process.stop()
        await self.engine.bury()
        self.process = await engines.Process.start(self.engine.url, clock=self.clock)
        return await self.is_recorded(ended)

    async def is_recorded(self, ended: list[outcomes.Outcome]) -> bool:
        """All of it or nothing; the audit looks at what belongs together."""
        post = delivering.Post(self.process.ctx, ended[0].key[0])
        await post.audit()
        rows = [row for row in await post.rows() if row.account_id == post.account_id]
        logged = await post.attempts()
        if logged:
            assert [(row.state, row.attempt_count, row.worker) for row in rows] == [("waiting", 1, None)]
            assert await post.statuses() == STATUSES
            assert len(logged) == len(VERDICTS)
            assert {*(await post.attempt_counts()).values()} == {1}
        else:
            assert [(row.state, row.attempt_count, row.worker) for row in rows] == [("sending", 0, "dead")] * 4
            assert await post.statuses() == {"queued": 4}
        return bool(logged)

    async def take_over(self, ended: list[outcomes.Outcome]) -> None:
        """The lease ends, another worker tries those that are left, and everything is in order."""
        ctx = self.process.ctx
        self.clock.pass_seconds(61)
        post = delivering.Post(ctx, ended[0].key[0])
        async with ctx.store.transaction() as tx:
            await queue.promote(tx, now=self.clock.now, most=100)
            wanted = [queue.Wanted(queue.lane_of(DOMAIN, post.account_id), 10)]
            claims = await queue.claim(tx, wanted, lease_until=self.clock.now + 1, worker="alive")
        await ctx.record.submit([outcome_of(ctx, claim, judging.Verdict.DELIVERED, worker="alive") for claim in claims])
        assert await post.rows() == []
        await post.audit()


def outcome_of(
    ctx: context.Context, claim: queue.Claimed, verdict: judging.Verdict, *, worker: str = "dead"
) -> outcomes.Outcome:
    now = ctx.clock()
    return outcomes.Outcome(
        key=claim.key,
        email_key=claim.email_key,
        recipient_count=len(VERDICTS),
        verdict=verdict,
        smtp_code=250,
        response="Ok",
        at=now,
        ledger_id=ctx.new_id(identifiers.LEDGER, now=now),
        worker=worker,
        next_attempt_at=now + contexts.SECOND if verdict is judging.Verdict.RETRY else None,
        suppress=verdict is judging.Verdict.BOUNCED,
        attempt=attempts.Attempt(
            *claim.key, now, 5, "pool", "mx", "192.0.2.1", "", "content", verdict, None, "because", 250, "", "Ok", 0
        ),
    )


@pytest.fixture
async def office(make_engine: Callable[[], engines.Engine]) -> AsyncIterator[Office]:
    opened = Office(make_engine())
    await opened.open()
    yield opened
    await opened.close()


async def test_a_death_before_the_commit_records_nothing(office: Office) -> None:
    for count in STATEMENTS:
        ended = await office.sent()
        fault = office.engine.death(office.process, Moment.BEFORE, statements=count, share=0)
        assert not await office.record_and_die(fault, ended)
        await office.take_over(ended)


async def test_a_death_during_the_commit_records_all_or_nothing(office: Office) -> None:
    for share in SHARES:
        ended = await office.sent()
        fault = office.engine.death(office.process, Moment.DURING, statements=0, share=share)
        await office.record_and_die(fault, ended)
        await office.take_over(ended)


async def test_a_death_after_the_commit_has_recorded_everything(office: Office) -> None:
    ended = await office.sent()
    fault = office.engine.death(office.process, Moment.AFTER, statements=0, share=0)
    assert await office.record_and_die(fault, ended)
    await office.take_over(ended)


async def test_a_store_that_fails_meanwhile_is_told_again_and_records_once(office: Office) -> None:
    for moment, count, share in (
        *((Moment.BEFORE, c, 0.0) for c in STATEMENTS),
        *((Moment.DURING, 0, s) for s in SHARES),
    ):
        ended = await office.sent()
        fault = office.engine.trouble(office.process, moment, statements=count, share=share)
        office.process.store.expect(fault)
        try:
            await office.process.ctx.record.submit(ended)
        except group_commit.TROUBLE:
            office.seen["refused"] += 1
        await office.engine.settle()
        office.process.store.expect_nothing()
        await office.is_recorded(ended)
        # The engine offers a result again until it is taken; that it was taken already, in doubt, does no harm.
        await office.process.ctx.record.submit(ended)
        assert await office.is_recorded(ended)
        await office.take_over(ended)
    assert office.seen["refused"] > 1
