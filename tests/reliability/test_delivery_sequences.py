"""Generated sequences of the queue: workers claim, die, wake up and record results in any order.

A model of a few lines knows how every recipient has to stand. After each step the store is compared with it, row for
row, and verified. The same seed gives the same sequence.
"""

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from postroad import config, context
from postroad.mail.results import outcomes
from postroad.model.bounces import disposition
from postroad.model.units import identifiers
from postroad.roles import composition
from postroad.services.messages import queue_inspection
from postroad.services.operations import operator_jobs
from postroad.storage.mail import attempts, messages, queue, queue_views
from tests import accepted_mail, contexts
from tests.delivery import bulk_queue
from tests.reliability import profile
from tests.storage import samples

STEPS = 200 if profile.IS_LONG else 120
WORKERS = ("one", "two")
DOMAINS = ("a.example", "b.example", "c.example")
LEASE = 60 * contexts.SECOND
RARE = ("claimed after a loss", "lost", "late", "not its own, and the first", "not its own, and no use")
FINAL = {
    disposition.Verdict.DELIVERED: "delivered",
    disposition.Verdict.BOUNCED: "bounced",
    disposition.Verdict.FAILED: "failed",
}


@dataclass(slots=True)
class ExpectedRecipient:
    """How a recipient has to stand. `worker` holds its lease; `due_at` counts when it is not ready.

    `place` is the one in the schedule, which attempts that are asked for keep.
    """

    status: str = "queued"
    attempts: int = 0
    place: int = 0
    logged: int = 0
    is_ready: bool = True
    lost_leases: int = 0
    due_at: int = 0
    worker: str | None = None

    @property
    def is_final(self) -> bool:
        return self.status in FINAL.values()

    @property
    def state(self) -> str:
        return "ready" if self.is_ready else "waiting" if self.worker is None else "sending"


@dataclass(slots=True)
class Sequence:
    """The store, the model, and what each worker believes to hold."""

    ctx: context.Context
    clock: contexts.Clock
    account_id: str
    chance: random.Random
    model: dict[queue.Key, ExpectedRecipient] = field(default_factory=dict)
    believed: dict[str, dict[queue.Key, queue.Claimed]] = field(default_factory=lambda: {name: {} for name in WORKERS})
    seen: Counter[str] = field(default_factory=Counter)

    async def accept(self) -> None:
        to = tuple(f"{name}@{self.chance.choice(DOMAINS)}" for name in "xyz"[: self.chance.randint(1, 3)])
        message_id = await accepted_mail.accept(self.ctx, self.account_id, to=to)
        async with self.ctx.store.reading() as tx:
            for one in await messages.recipients(tx, self.account_id, message_id):
                self.model[self.account_id, message_id, one.id] = ExpectedRecipient()

    async def claim(self) -> None:
        worker = self.chance.choice(WORKERS)
        until = self.clock.now + LEASE
        async with self.ctx.store.transaction() as tx:
            queue_keys = await queue.queue_keys(tx, after="", limit=10)
            wanted = [queue.ClaimRequest(queue_key, self.chance.randint(1, 3)) for queue_key in queue_keys]
            claimed = await queue.claim(tx, wanted, lease_until=until, worker=worker)
        for claim in claimed:
            standing = self.model[claim.key]
            assert standing.is_ready
            assert (claim.attempt_count, claim.lost_leases) == (standing.place, standing.lost_leases)
            standing.is_ready, standing.worker, standing.due_at = False, worker, until
            self.believed[worker][claim.key] = claim
            self.seen["claimed after a loss"] += bool(claim.lost_leases)

    async def crash(self) -> None:
        """A worker is gone, and a new one has its name: it believes nothing."""
        self.believed[self.chance.choice(WORKERS)].clear()

    async def promote(self) -> None:
        self.clock.pass_seconds(self.chance.choice((1, 61, 61)))
        async with self.ctx.store.transaction() as tx:
            await queue.promote(tx, now=self.clock.now, limit=1_000)
        for standing in self._queued():
            if not standing.is_ready and standing.due_at <= self.clock.now:
                self.seen["lost"] += standing.worker is not None
                standing.lost_leases += standing.worker is not None
                standing.is_ready, standing.worker = True, None

    async def renew(self) -> None:
        worker, claims = self._some_believed()
        until = self.clock.now + LEASE
        async with self.ctx.store.transaction() as tx:
            extended = await queue.extend(tx, [claim.key for claim in claims], lease_until=until, worker=worker)
        own = [claim.key for claim in claims if self.model[claim.key].worker == worker]
        assert sorted(extended) == sorted(own)
        for key in own:
            self.model[key].due_at = until

    async def release(self) -> None:
        worker, claims = self._some_believed()
        async with self.ctx.store.transaction() as tx:
            await queue.release(tx, [claim.key for claim in claims], now=self.clock(), worker=worker)
        for claim in claims:
            del self.believed[worker][claim.key]
            standing = self.model[claim.key]
            if standing.worker == worker:
                standing.is_ready, standing.worker, standing.due_at = True, None, self.clock.now

    async def record(self) -> None:
        """Results of a worker, about some of what it believes to hold, be it so or not."""
        worker, claims = self._some_believed()
        if self.chance.random() < 0.5:
            # It wakes up after a long time, and records what is no longer its own.
            claims = [claim for key, claim in self.believed[worker].items() if self.model[key].worker != worker]
        if not claims:
            return
        self.clock.now += 1
        ended = [self._outcome(claim, worker) for claim in claims]
        await self.ctx.outcome_commits.submit(ended)
        for outcome in ended:
            del self.believed[worker][outcome.key]
            self._tell(self.model[outcome.key], outcome)

    def _tell(self, standing: ExpectedRecipient, outcome: outcomes.Outcome) -> None:
        tried = outcome.attempt is not None
        standing.logged += tried
        is_own = standing.worker == outcome.worker
        if standing.is_final:
            self.seen["late"] += 1
        elif outcome.verdict is not disposition.Verdict.RETRY:
            self.seen["not its own, and the first"] += not is_own
            standing.attempts += tried
            standing.status, standing.worker = FINAL[outcome.verdict], None
        elif is_own:
            assert outcome.next_attempt_at is not None
            standing.attempts += 1
            standing.place += 1
            standing.lost_leases = 0
            standing.status, standing.worker, standing.due_at = "deferred", None, outcome.next_attempt_at
        else:
            self.seen["not its own, and no use"] += 1

    def _outcome(self, claim: queue.Claimed, worker: str) -> outcomes.Outcome:
        now = self.clock.now
        verdict = self.chance.choice(list(disposition.Verdict))
        is_tried = verdict is disposition.Verdict.RETRY or self.chance.random() < 0.8
        attempt = attempts.Attempt(
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
        )
        return outcomes.Outcome(
            key=claim.key,
            email_key=claim.email_key,
            recipient_count=0,
            verdict=verdict,
            status=outcomes.STATUS[verdict],
            smtp_code=250,
            response="Ok",
            at=now,
            ledger_id=self.ctx.new_id(identifiers.LEDGER, now=now),
            worker=worker,
            next_attempt_at=now + 10 * contexts.SECOND if verdict is disposition.Verdict.RETRY else None,
            attempt=attempt if is_tried else None,
        )

    async def cancel(self) -> None:
        """An operator cancels a message, as far as nobody is sending it."""
        if not self.model:
            return
        account_id, message_id, _ = self.chance.choice(list(self.model))
        free = [one for key, one in self.model.items() if key[1] == message_id and not one.is_final and not one.worker]
        done = await queue_inspection.cancel(
            self.ctx, [queue_views.Filter(account_id=account_id, message_id=message_id)]
        )
        assert done.changed == len(free)
        for standing in free:
            standing.status = "failed"

    async def retry(self) -> None:
        waiting = [one for one in self._queued() if one.state == "waiting"]
        done = await queue_inspection.retry(self.ctx, [queue_views.Filter()])
        assert done.changed == len(waiting)
        for standing in waiting:
            standing.is_ready = True
            standing.place -= 1

    def _queued(self) -> list[ExpectedRecipient]:
        return [standing for standing in self.model.values() if not standing.is_final]

    def _some_believed(self) -> tuple[str, list[queue.Claimed]]:
        worker = self.chance.choice(WORKERS)
        claims = list(self.believed[worker].values())
        return worker, self.chance.sample(claims, self.chance.randint(0, min(len(claims), 3)))

    async def check(self) -> None:
        """The store is as the model says, and the audit finds nothing."""
        samples.teach(
            self.ctx.store,
            recipients="SELECT id, status, attempt_count FROM recipients",
            logged="SELECT recipient_id, COUNT(*) FROM attempts GROUP BY recipient_id",
        )
        async with self.ctx.store.scanning() as tx:
            rows = await queue_views.page(tx, queue_views.Filter(), state=None, limit=10_000)
            found = {one: (status, count) for one, status, count in await tx.fetch("test.recipients")}
            logged = {one: count for one, count in await tx.fetch("test.logged")}  # noqa: C416 - rows are no pairs
        assert found == {key[2]: (one.status, one.attempts) for key, one in self.model.items()}
        assert logged == {key[2]: one.logged for key, one in self.model.items() if one.logged}
        queued = {key[2]: one for key, one in self.model.items() if not one.is_final}
        assert {row.recipient_id: (row.state, row.worker, row.attempt_count, row.lost_leases) for row in rows} == {
            name: (one.state, one.worker, one.attempts, one.lost_leases) for name, one in queued.items()
        }
        assert (await operator_jobs.check_consistency(self.ctx)).findings == []


@pytest.mark.parametrize("seed", profile.SEEDS)
async def test_every_recipient_stands_as_it_should_whatever_workers_do(url: str, seed: int) -> None:
    clock = contexts.Clock()
    settings = config.load(
        environment={},
        overrides={
            "database": {"url": url},
            "security": {"installation_key": contexts.SECRET_KEY},
            "limits": {"request_rate": 1_000_000, "request_burst": 1_000_000},
            "warmup": {"enabled": False},
        },
    )
    async with composition.open_context(settings, clock=clock) as ctx:
        chance = random.Random(seed)
        story = Sequence(ctx, clock, await bulk_queue.new_account(ctx, "Shop"), chance)
        steps: list[Callable[[], object]] = [
            *(story.accept, story.claim, story.record, story.promote) * 3,
            *(story.renew, story.release, story.crash, story.cancel, story.retry),
        ]
        for _ in range(STEPS):
            step = chance.choice(steps)
            await step()  # type: ignore[misc]
            story.seen[step.__name__] += 1
            clock.now += 1
            await story.check()
    # The sequence covered enough.
    assert min(story.seen[event] for event in RARE) > 0
    assert {step.__name__ for step in steps} <= story.seen.keys()
