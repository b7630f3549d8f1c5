"""Every moment of recording results, one after the other: the process dies there, or the store fails there.

Between any two statements, at any byte of the commit, and after it: the results are recorded in every table or in none,
and then the recipients are still under the lease of the dead, and are tried again when it ends.
"""

from collections import Counter
from collections.abc import AsyncIterator, Callable

import msgspec
import pytest

from postroad import context
from postroad.mail.results import outcomes
from postroad.model.bounces import disposition
from postroad.model.mail import statuses
from postroad.model.units import identifiers
from postroad.storage.engine import store
from postroad.storage.mail import attempts, queue
from tests import contexts
from tests.delivery import bulk_queue
from tests.reliability import crashable_stores, delivery_harness, faults
from tests.reliability.faults import Moment

# More statements than the recording transaction has: the last ones come before its commit.
STATEMENTS = 12
# The verdicts of recipients; the last one has expired.
VERDICTS = (
    disposition.Verdict.DELIVERED,
    disposition.Verdict.BOUNCED,
    disposition.Verdict.FAILED,
    disposition.Verdict.RETRY,
    disposition.Verdict.FAILED,
)
STATUSES = {"delivered": 1, "bounced": 1, "failed": 1, "deferred": 1, "expired": 1}
DOMAIN = "example.net"


class CrashHarness(crashable_stores.CrashHarness):
    """With the mail that the process is about to record."""

    def __init__(self, engine: crashable_stores.Engine) -> None:
        super().__init__(engine)
        self.seen: Counter[str] = Counter()
        self._number = 0

    async def sent(self) -> list[outcomes.Outcome]:
        """A message of a new account was sent to five recipients, with five outcomes."""
        self._number += 1
        ctx = self.process.ctx
        account_id = await bulk_queue.new_account(ctx, f"Shop {self._number}", domain=f"shop{self._number}.example")
        await bulk_queue.fill(ctx, account_id, DOMAIN, count=len(VERDICTS), each=len(VERDICTS))
        async with ctx.store.transaction() as tx:
            wanted = [queue.ClaimRequest(queue.queue_key_of(DOMAIN, account_id), 10)]
            until = self.clock.now + 60 * contexts.SECOND
            claims = await queue.claim(tx, wanted, lease_until=until, worker="dead")
        ended = [outcome_of(ctx, claim, verdict) for claim, verdict in zip(claims, VERDICTS, strict=True)]
        return [*ended[:-1], msgspec.structs.replace(ended[-1], status=statuses.RecipientStatus.EXPIRED)]

    async def record_and_die(self, fault: faults.Fault, ended: list[outcomes.Outcome]) -> bool:
        """Whether the results were recorded by the process that died."""
        self.process.store.expect(fault)
        try:
            await self.process.ctx.outcome_commits.submit(ended)
        except store.UNAVAILABLE:
            assert self.process.store.has_struck
        await self.restart(fault)
        return await self.is_recorded(ended)

    async def is_recorded(self, ended: list[outcomes.Outcome]) -> bool:
        """All of it or nothing; the audit looks at what belongs together."""
        harness = delivery_harness.DeliveryHarness(self.process.ctx, ended[0].key[0])
        await harness.audit()
        rows = [row for row in await harness.rows() if row.account_id == harness.account_id]
        logged = await harness.attempts()
        if logged:
            assert [(row.state, row.attempt_count, row.worker) for row in rows] == [("waiting", 1, None)]
            assert await harness.statuses() == STATUSES
            assert len(logged) == len(VERDICTS)
            assert {*(await harness.attempt_counts()).values()} == {1}
        else:
            assert [(row.state, row.attempt_count, row.worker) for row in rows] == [("sending", 0, "dead")] * 5
            assert await harness.statuses() == {"queued": 5}
        return bool(logged)

    async def take_over(self, ended: list[outcomes.Outcome]) -> None:
        """The lease ends, another worker tries those that are left, and everything is in order."""
        ctx = self.process.ctx
        self.clock.pass_seconds(61)
        harness = delivery_harness.DeliveryHarness(ctx, ended[0].key[0])
        async with ctx.store.transaction() as tx:
            await queue.promote(tx, now=self.clock.now, limit=100)
            wanted = [queue.ClaimRequest(queue.queue_key_of(DOMAIN, harness.account_id), 10)]
            claims = await queue.claim(tx, wanted, lease_until=self.clock.now + 1, worker="alive")
        await ctx.outcome_commits.submit(
            [outcome_of(ctx, claim, disposition.Verdict.DELIVERED, worker="alive") for claim in claims]
        )
        assert await harness.rows() == []
        await harness.audit()


def outcome_of(
    ctx: context.Context, claim: queue.Claimed, verdict: disposition.Verdict, *, worker: str = "dead"
) -> outcomes.Outcome:
    now = ctx.clock()
    return outcomes.Outcome(
        key=claim.key,
        email_key=claim.email_key,
        recipient_count=len(VERDICTS),
        verdict=verdict,
        status=outcomes.STATUS[verdict],
        smtp_code=250,
        response="Ok",
        at=now,
        ledger_id=ctx.new_id(identifiers.LEDGER, now=now),
        worker=worker,
        next_attempt_at=now + contexts.SECOND if verdict is disposition.Verdict.RETRY else None,
        suppress=verdict is disposition.Verdict.BOUNCED,
        attempt=attempts.Attempt(
            *claim.key,
            now,
            5,
            "provider_queue",
            "mx",
            "192.0.2.1",
            "",
            "content",
            verdict,
            None,
            "because",
            250,
            "",
            "Ok",
            0,
        ),
    )


@pytest.fixture
async def crash_harness(make_engine: Callable[[], crashable_stores.Engine]) -> AsyncIterator[CrashHarness]:
    opened = CrashHarness(make_engine())
    await opened.open()
    yield opened
    await opened.close()


async def test_a_death_at_any_moment_records_all_or_nothing(crash_harness: CrashHarness) -> None:
    for moment, count, share in faults.deaths(STATEMENTS):
        ended = await crash_harness.sent()
        fault = crash_harness.engine.death(crash_harness.process, moment, statements=count, share=share)
        is_recorded = await crash_harness.record_and_die(fault, ended)
        assert moment is Moment.DURING or is_recorded == (moment is Moment.AFTER)
        await crash_harness.take_over(ended)


async def test_a_store_that_fails_meanwhile_is_retried_and_records_once(crash_harness: CrashHarness) -> None:
    for moment, count, share in faults.failures(STATEMENTS):
        ended = await crash_harness.sent()
        fault = crash_harness.engine.trouble(crash_harness.process, moment, statements=count, share=share)
        crash_harness.process.store.expect(fault)
        try:
            await crash_harness.process.ctx.outcome_commits.submit(ended)
        except store.UNAVAILABLE:
            crash_harness.seen["refused"] += 1
        await crash_harness.engine.settle()
        crash_harness.process.store.expect_nothing()
        await crash_harness.is_recorded(ended)
        # The engine offers a result again until it is taken; that it was taken already, in doubt, does no harm.
        await crash_harness.process.ctx.outcome_commits.submit(ended)
        assert await crash_harness.is_recorded(ended)
        await crash_harness.take_over(ended)
    assert crash_harness.seen["refused"] > 1
