"""Which recipients next: lane after lane, as many of each as its pool can soon send.

A lane is a domain and an account (see storage/queue.py). The walk through the lanes goes on where it stopped, and lanes
of one pool share its room, so that everybody's turn comes, however many recipients others have. What a pool has no room
for stays in the store, untouched. A destination whose hosts are all dead is passed over; only its recipients whose time
is over are taken, and fail.
"""

import asyncio
import collections
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from postroad.delivery import hosts, leases, pool, preparing, recording, routing
from postroad.model import expiry, judging, retry, times
from postroad.protocol.smtp import values
from postroad.services import context
from postroad.storage import group_commit, queue, suppressions
from postroad.telemetry import logs

# Lanes that are looked at in one step: a few microseconds each.
LANES: Final = 500
# Rows that are taken in one step, over all pools: the transaction stays short.
CLAIMS: Final = 500
# What each pool may have of them at least, so that recipients of one message mostly stay together.
SMALLEST_SHARE: Final = 10
PROMOTIONS: Final = 2_000
# Domains that are looked up at the same time; the others wait for their turn in the store.
RESOLVING: Final = 200
# How often the recipients of a blocked destination are searched for those whose time is over.
EXPIRY_SECONDS: Final = 30.0
# How many of those searches are remembered; what is forgotten is searched again, which only costs time.
MOST_SEARCHED_LANES: Final = 10_000
MOST_IDLE_POOLS: Final = 1_000
# A recipient whose workers died this often may be their death. It waits for its next attempt, and its workers live on.
MOST_LOST_LEASES: Final = 10
# After a bug, or with a store that is away: the same again at once would fare no better.
TROUBLE_SECONDS: Final = 1.0


@dataclass(slots=True)
class Plan:
    """What to claim in one step, and why."""

    wanted: list[queue.Wanted] = field(default_factory=list)
    expired: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Claims:
    """What was taken in one step, and which of the addresses are to be left alone."""

    rows: Sequence[queue.Claimed] = ()
    suppressed: Mapping[suppressions.Place, suppressions.Suppression] = field(default_factory=dict)


class Dispatching:
    """Takes due recipients from the store and gives them to pools."""

    def __init__(
        self,
        ctx: context.Context,
        router: routing.Router,
        known: hosts.Hosts,
        tools: pool.Tools,
    ) -> None:
        self._ctx = ctx
        self._router = router
        self._hosts = known
        self._tools = tools
        self._held: leases.Leases = tools.held
        self._recording: recording.Recording = tools.recording
        self._log: logs.Logger = tools.log
        self._expiry = expiry.Expiry(ctx.settings.delivery.lease_seconds * times.SECOND)
        self._lifetime = retry.lifetime(ctx.settings.delivery.retry_seconds)
        self._cursor = ""
        self._is_fruitful = False
        self._resolving: dict[str, asyncio.Task[None]] = {}
        self._preparations: set[asyncio.Task[None]] = set()
        self._expiry_at: dict[str, float] = {}
        self.pools: dict[str, pool.Pool] = {}
        # The route that led to each pool the last time; those of one pool lead to the same provider.
        self.routes: dict[str, routing.Route] = {}

    @property
    def is_round_over(self) -> bool:
        """Whether the next step looks at the first lanes."""
        return not self._cursor

    async def step(self) -> bool:
        """Take what can be taken now; False at the end of a round through all lanes that brought nothing."""
        now = self._ctx.clock()
        async with self._ctx.store.reading() as tx:
            is_due = await queue.is_due(tx, now=now, leases_until=self._leases_until(now))
            lanes = await queue.lanes(tx, after=self._cursor, most=LANES)
        plan = self._plan(lanes)
        claimed = await self._claim(plan, now=now, promote=is_due) if plan.wanted or is_due else Claims()
        self._cursor = "" if len(lanes) < LANES else lanes[-1]
        await self._hand_out(claimed, plan)
        self._is_fruitful = self._is_fruitful or is_due or bool(claimed.rows)
        if not self.is_round_over:
            return True
        is_fruitful, self._is_fruitful = self._is_fruitful, False
        return is_fruitful

    async def stop(self) -> None:
        """Hand back what was not begun, and finish what was."""
        for task in self._resolving.values():
            task.cancel()
        if self._preparations:
            await asyncio.wait(self._preparations)
        left = [key for one in self.pools.values() for job in one.close() for key in job.keys]
        if left:
            await self._held.hand_back(left)
        await asyncio.gather(*(one.finish() for one in self.pools.values()))

    def _leases_until(self, now: int) -> int:
        return self._expiry.until(now=now, steady=self._tools.clock())

    def _plan(self, lanes: Sequence[str]) -> Plan:
        """How many of each lane; lanes of one pool share its room."""
        if len(self.pools) > MOST_IDLE_POOLS:
            self._forget_idle_pools()
        plan = Plan()
        by_pool: dict[pool.Pool, list[str]] = collections.defaultdict(list)
        ending: list[tuple[str, int]] = []
        for lane in lanes:
            domain = queue.domain_of(lane)
            route = self._router.cached(domain)
            if route is None:
                self._resolve(domain)
            elif isinstance(route, routing.NoRoute):
                ending.append((lane, queue.ANY_TIME))
            elif self._hosts.blocked_until(route) is not None:
                self._pool(route)
                if self._may_hold_expired(lane):
                    plan.expired.add(lane)
                    ending.append((lane, self._ctx.clock() - self._lifetime))
            elif self._pool(route).room():
                by_pool[self._pool(route)].append(lane)
        most = max(SMALLEST_SHARE, CLAIMS // max(1, len(by_pool) + len(ending)))
        plan.wanted += [queue.Wanted(lane, most, queued_before) for lane, queued_before in ending]
        for one, together in by_pool.items():
            self._share(plan, together, room=min(one.room(), most))
        return plan

    def _share(self, plan: Plan, lanes: Sequence[str], *, room: int) -> None:
        # With more lanes than room chance decides, so that everybody's turn comes.
        chosen = lanes if len(lanes) <= room else random.sample(lanes, room)
        share = room // len(chosen)
        for lane in chosen:
            route = self._router.cached(queue.domain_of(lane))
            is_proven = isinstance(route, routing.Route) and self._hosts.is_proven(route)
            plan.wanted.append(queue.Wanted(lane, share if is_proven else 1))

    def _may_hold_expired(self, lane: str) -> bool:
        """Whether the lane of a blocked destination has not been searched for a while."""
        now = self._tools.clock()
        if now < self._expiry_at.get(lane, 0.0):
            return False
        self._expiry_at[lane] = now + EXPIRY_SECONDS
        while len(self._expiry_at) > MOST_SEARCHED_LANES:
            del self._expiry_at[next(iter(self._expiry_at))]
        return True

    def _pool(self, route: routing.Route) -> pool.Pool:
        one = self.pools.get(route.pool)
        if one is None:
            limits = getattr(self._ctx.settings.pools, route.provider)
            one = self.pools[route.pool] = pool.Pool(route.pool, limits, self._tools)
        self.routes[route.pool] = route
        return one

    def _forget_idle_pools(self) -> None:
        now = self._tools.clock()
        for name, one in list(self.pools.items()):
            if one.is_idle and one.pace.state(now) == "open":
                del self.pools[name]
                del self.routes[name]

    def _resolve(self, domain: str) -> None:
        if domain not in self._resolving and len(self._resolving) < RESOLVING:
            self._resolving[domain] = asyncio.get_running_loop().create_task(self._look_up(domain))

    async def _look_up(self, domain: str) -> None:
        try:
            await self._router.route(domain)
        except Exception:  # noqa: BLE001 - the log gets it, and the domain waits
            self._log.exception("routing_failed", domain=domain)
            await asyncio.sleep(TROUBLE_SECONDS)
        finally:
            del self._resolving[domain]
            self._tools.wake()

    async def _claim(self, plan: Plan, *, now: int, promote: bool) -> Claims:
        async with self._ctx.store.transaction() as tx:
            if promote:
                await queue.promote(tx, now=now, most=PROMOTIONS, leases_until=self._leases_until(now))
            if not plan.wanted:
                return Claims()
            rows = await queue.claim(tx, plan.wanted, lease_until=self._held.until(), worker=self._held.worker)
            suppressed = await suppressions.find(tx, [(row.account_id, row.email_key) for row in rows])
        return Claims(self._held.take(rows), suppressed)

    async def _hand_out(self, claimed: Claims, plan: Plan) -> None:
        for claim in claimed.rows:
            if claim.lost_leases:
                self._ctx.metrics.lost_leases.add()
                self._log.warning(
                    "tried_before_without_result", message_id=claim.message_id, recipient_id=claim.recipient_id
                )
        lanes: dict[str, list[queue.Claimed]] = collections.defaultdict(list)
        for claim in await self._put_off_deadly(await self._leave_alone_suppressed(claimed)):
            lanes[claim.lane].append(claim)
        jobs: list[preparing.Job] = []
        for lane, together in lanes.items():
            if lane in plan.expired:
                await self._fail_expired(lane, together)
            else:
                jobs += await self._jobs(lane, together)
        if jobs:
            for job in jobs:
                self._pool(job.route).expect(1)
            task = asyncio.get_running_loop().create_task(self._prepare(jobs))
            self._preparations.add(task)
            task.add_done_callback(self._preparations.discard)

    async def _leave_alone_suppressed(self, claimed: Claims) -> Sequence[queue.Claimed]:
        """End recipients on the suppression list without an attempt; returns the others."""
        listed = claimed.suppressed
        left_alone = [claim for claim in claimed.rows if (claim.account_id, claim.email_key) in listed]
        if not left_alone:
            return claimed.rows
        reasons = [listed[claim.account_id, claim.email_key].reason for claim in left_alone]
        sentences = [f"not tried: the address is on the suppression list ({reason})" for reason in reasons]
        await self._recording.decided(left_alone, judging.Verdict.BOUNCED, sentences)
        return [claim for claim in claimed.rows if (claim.account_id, claim.email_key) not in listed]

    async def _put_off_deadly(self, claims: Sequence[queue.Claimed]) -> Sequence[queue.Claimed]:
        """Let recipients wait by the schedule that have outlived too many workers; returns the others."""
        deadly = [claim for claim in claims if claim.lost_leases >= MOST_LOST_LEASES]
        if not deadly:
            return claims
        await self._recording.nowhere(deadly, preparing.DEADLY)
        return [claim for claim in claims if claim.lost_leases < MOST_LOST_LEASES]

    async def _fail_expired(self, lane: str, claims: Sequence[queue.Claimed]) -> None:
        self._expiry_at.pop(lane, None)  # there may be more
        route = self._router.cached(queue.domain_of(lane))
        known = self.pools.get(route.pool) if isinstance(route, routing.Route) else None
        trouble = known.last_trouble if known else ""
        sentence = f"the mail servers of {queue.domain_of(lane)} did not answer in all the time there was: {trouble}"
        await self._recording.decided(claims, judging.Verdict.FAILED, [sentence.rstrip(": ")] * len(claims))

    async def _jobs(self, lane: str, claims: Sequence[queue.Claimed]) -> list[preparing.Job]:
        route = self._router.cached(queue.domain_of(lane))
        if isinstance(route, routing.Route):
            return preparing.jobs_of(claims, route)
        if route is None:  # forgotten between plan and claim
            await self._held.hand_back([claim.key for claim in claims])
        else:
            result = values.Result(values.Stage.ROUTE, trouble=route.trouble, permanent=route.permanent)
            await self._recording.nowhere(claims, result)
        return []

    async def _prepare(self, jobs: Sequence[preparing.Job]) -> None:
        """Read and sign what there is room for, a batch at once, and give all to their pools."""
        ahead = dict.fromkeys(self._tools.preparing.ahead(jobs))

        def ready(job: preparing.Job) -> None:
            del ahead[job]
            self._pool(job.route).add(job)

        for job in jobs:
            if job not in ahead:
                self._pool(job.route).add(job)
        try:
            if ahead:
                await self._tools.preparing.prepare(list(ahead), ready)
        except group_commit.TROUBLE as trouble:
            self._log.warning("jobs_not_prepared", jobs=len(ahead), error=trouble.message)
        except Exception:  # noqa: BLE001 - the log gets it, and the jobs go back
            self._log.exception("jobs_not_prepared", jobs=len(ahead))
        if ahead:
            await self._give_up(list(ahead))

    async def _give_up(self, jobs: Sequence[preparing.Job]) -> None:
        await asyncio.sleep(TROUBLE_SECONDS)
        for job in jobs:
            self._pool(job.route).forget(1)
            self._tools.preparing.done_with(job)
        await self._held.hand_back([key for job in jobs for key in job.keys])
