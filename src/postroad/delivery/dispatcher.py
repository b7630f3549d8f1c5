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

from postroad.delivery import hosts, leases, message_loader, provider_queue, recorder, routing
from postroad.model import lease_clock, retry, times
from postroad.model.bounces import disposition
from postroad.protocol.smtp import values
from postroad.services import context
from postroad.storage import group_commit, queue, suppressions
from postroad.telemetry import logs

# Lanes that are looked at in one step: a few microseconds each.
MAX_QUEUES_PER_STEP: Final = 500
# Rows that are taken in one step, over all pools: the transaction stays short.
MAX_CLAIMS_PER_STEP: Final = 500
# What each pool may have of them at least, so that recipients of one message mostly stay together.
MIN_SHARE: Final = 10
MAX_PROMOTIONS_PER_STEP: Final = 2_000
# Domains that are looked up at the same time; the others wait for their turn in the store.
MAX_CONCURRENT_LOOKUPS: Final = 200
# How often the recipients of a blocked destination are searched for those whose time is over.
EXPIRY_SEARCH_SECONDS: Final = 30.0
# How many of those searches are remembered; what is forgotten is searched again, which only costs time.
MAX_SEARCHED_QUEUES: Final = 10_000
MAX_IDLE_PROVIDER_QUEUES: Final = 1_000
# A recipient whose workers died this often may be their death. It waits for its next attempt, and its workers live on.
MAX_LOST_LEASES: Final = 10
# After a bug, or with a store that is away: the same again at once would fare no better.
ERROR_BACKOFF_SECONDS: Final = 1.0


@dataclass(slots=True)
class Plan:
    """What to claim in one step, and why."""

    wanted: list[queue.ClaimRequest] = field(default_factory=list)
    expired: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Claims:
    """What was taken in one step, and which of the addresses are to be left alone."""

    rows: Sequence[queue.Claimed] = ()
    suppressed: Mapping[suppressions.SuppressionKey, suppressions.Suppression] = field(default_factory=dict)


class Dispatcher:
    """Takes due recipients from the store and gives them to pools."""

    def __init__(
        self,
        ctx: context.Context,
        router: routing.Router,
        known: hosts.Hosts,
        services: provider_queue.DeliveryServices,
    ) -> None:
        self._ctx = ctx
        self._router = router
        self._hosts = known
        self._services = services
        self._held: leases.Leases = services.held
        self._recorder: recorder.Recorder = services.recorder
        self._log: logs.Logger = services.log
        self._lease_clock = lease_clock.LeaseClock(ctx.settings.delivery.lease_seconds * times.SECOND)
        self._lifetime = retry.lifetime(ctx.settings.delivery.retry_seconds)
        self._cursor = ""
        self._has_found_work = False
        self._resolving: dict[str, asyncio.Task[None]] = {}
        self._preparations: set[asyncio.Task[None]] = set()
        self._next_expiry_search: dict[str, float] = {}
        self.pools: dict[str, provider_queue.Pool] = {}
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
            lanes = await queue.lanes(tx, after=self._cursor, limit=MAX_QUEUES_PER_STEP)
        plan = self._plan(lanes)
        claimed = await self._claim(plan, now=now, promote=is_due) if plan.wanted or is_due else Claims()
        self._cursor = "" if len(lanes) < MAX_QUEUES_PER_STEP else lanes[-1]
        await self._assign(claimed, plan)
        self._has_found_work = self._has_found_work or is_due or bool(claimed.rows)
        if not self.is_round_over:
            return True
        has_found_work, self._has_found_work = self._has_found_work, False
        return has_found_work

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
        return self._lease_clock.expired_before(now=now, monotonic=self._services.clock())

    def _plan(self, lanes: Sequence[str]) -> Plan:
        """How many of each lane; lanes of one pool share its room."""
        if len(self.pools) > MAX_IDLE_PROVIDER_QUEUES:
            self._drop_idle_provider_queues()
        plan = Plan()
        by_provider_queue: dict[provider_queue.Pool, list[str]] = collections.defaultdict(list)
        ending: list[tuple[str, int]] = []
        for lane in lanes:
            domain = queue.domain_of(lane)
            route = self._router.cached(domain)
            if route is None:
                self._resolve(domain)
            elif isinstance(route, routing.NoRoute):
                ending.append((lane, queue.ANY_TIME))
            elif self._hosts.blocked_until(route) is not None:
                self._provider_queue(route)
                if self._may_hold_expired(lane):
                    plan.expired.add(lane)
                    ending.append((lane, self._ctx.clock() - self._lifetime))
            elif self._provider_queue(route).capacity_left():
                by_provider_queue[self._provider_queue(route)].append(lane)
        most = max(MIN_SHARE, MAX_CLAIMS_PER_STEP // max(1, len(by_provider_queue) + len(ending)))
        plan.wanted += [queue.ClaimRequest(lane, most, queued_before) for lane, queued_before in ending]
        for one, together in by_provider_queue.items():
            self._share(plan, together, room=min(one.capacity_left(), most))
        return plan

    def _share(self, plan: Plan, lanes: Sequence[str], *, room: int) -> None:
        # With more lanes than room chance decides, so that everybody's turn comes.
        chosen = lanes if len(lanes) <= room else random.sample(lanes, room)
        share = room // len(chosen)
        for lane in chosen:
            route = self._router.cached(queue.domain_of(lane))
            is_proven = isinstance(route, routing.Route) and self._hosts.is_proven(route)
            plan.wanted.append(queue.ClaimRequest(lane, share if is_proven else 1))

    def _may_hold_expired(self, lane: str) -> bool:
        """Whether the lane of a blocked destination has not been searched for a while."""
        now = self._services.clock()
        if now < self._next_expiry_search.get(lane, 0.0):
            return False
        self._next_expiry_search[lane] = now + EXPIRY_SEARCH_SECONDS
        while len(self._next_expiry_search) > MAX_SEARCHED_QUEUES:
            del self._next_expiry_search[next(iter(self._next_expiry_search))]
        return True

    def _provider_queue(self, route: routing.Route) -> provider_queue.Pool:
        one = self.pools.get(route.pool)
        if one is None:
            limits = getattr(self._ctx.settings.pools, route.provider)
            one = self.pools[route.pool] = provider_queue.Pool(route.pool, limits, self._services)
        self.routes[route.pool] = route
        return one

    def _drop_idle_provider_queues(self) -> None:
        now = self._services.clock()
        for name, one in list(self.pools.items()):
            if one.is_idle and one.adaptive_rate.state(now) == "open":
                del self.pools[name]
                del self.routes[name]

    def _resolve(self, domain: str) -> None:
        if domain not in self._resolving and len(self._resolving) < MAX_CONCURRENT_LOOKUPS:
            self._resolving[domain] = asyncio.get_running_loop().create_task(self._look_up(domain))

    async def _look_up(self, domain: str) -> None:
        try:
            await self._router.route(domain)
        except Exception:  # noqa: BLE001 - the log gets it, and the domain waits
            self._log.exception("routing_failed", domain=domain)
            await asyncio.sleep(ERROR_BACKOFF_SECONDS)
        finally:
            del self._resolving[domain]
            self._services.wake()

    async def _claim(self, plan: Plan, *, now: int, promote: bool) -> Claims:
        async with self._ctx.store.transaction() as tx:
            if promote:
                await queue.promote(tx, now=now, limit=MAX_PROMOTIONS_PER_STEP, leases_until=self._leases_until(now))
            if not plan.wanted:
                return Claims()
            rows = await queue.claim(tx, plan.wanted, lease_until=self._held.until(), worker=self._held.worker)
            suppressed = await suppressions.find(tx, [(row.account_id, row.email_key) for row in rows])
        return Claims(self._held.take(rows), suppressed)

    async def _assign(self, claimed: Claims, plan: Plan) -> None:
        for claim in claimed.rows:
            if claim.lost_leases:
                self._ctx.metrics.lost_leases.add()
                self._log.warning(
                    "tried_before_without_result", message_id=claim.message_id, recipient_id=claim.recipient_id
                )
        lanes: dict[str, list[queue.Claimed]] = collections.defaultdict(list)
        for claim in await self._defer_crashing(await self._bounce_suppressed(claimed)):
            lanes[claim.lane].append(claim)
        jobs: list[message_loader.Job] = []
        for lane, together in lanes.items():
            if lane in plan.expired:
                await self._fail_expired(lane, together)
            else:
                jobs += await self._jobs(lane, together)
        if jobs:
            for job in jobs:
                self._provider_queue(job.route).reserve(1)
            task = asyncio.get_running_loop().create_task(self._prepare(jobs))
            self._preparations.add(task)
            task.add_done_callback(self._preparations.discard)

    async def _bounce_suppressed(self, claimed: Claims) -> Sequence[queue.Claimed]:
        """End recipients on the suppression list without an attempt; returns the others."""
        listed = claimed.suppressed
        to_bounce = [claim for claim in claimed.rows if (claim.account_id, claim.email_key) in listed]
        if not to_bounce:
            return claimed.rows
        reasons = [listed[claim.account_id, claim.email_key].reason for claim in to_bounce]
        sentences = [f"not tried: the address is on the suppression list ({reason})" for reason in reasons]
        await self._recorder.record_without_attempt(to_bounce, disposition.Verdict.BOUNCED, sentences)
        return [claim for claim in claimed.rows if (claim.account_id, claim.email_key) not in listed]

    async def _defer_crashing(self, claims: Sequence[queue.Claimed]) -> Sequence[queue.Claimed]:
        """Let recipients wait by the schedule that have outlived too many workers; returns the others."""
        crashing = [claim for claim in claims if claim.lost_leases >= MAX_LOST_LEASES]
        if not crashing:
            return claims
        await self._recorder.record_unroutable(crashing, message_loader.WORKER_CRASHES)
        return [claim for claim in claims if claim.lost_leases < MAX_LOST_LEASES]

    async def _fail_expired(self, lane: str, claims: Sequence[queue.Claimed]) -> None:
        self._next_expiry_search.pop(lane, None)  # there may be more
        route = self._router.cached(queue.domain_of(lane))
        known = self.pools.get(route.pool) if isinstance(route, routing.Route) else None
        error = known.last_error if known else ""
        sentence = f"the mail servers of {queue.domain_of(lane)} did not answer in all the time there was: {error}"
        await self._recorder.record_without_attempt(
            claims, disposition.Verdict.FAILED, [sentence.rstrip(": ")] * len(claims)
        )

    async def _jobs(self, lane: str, claims: Sequence[queue.Claimed]) -> list[message_loader.Job]:
        route = self._router.cached(queue.domain_of(lane))
        if isinstance(route, routing.Route):
            return message_loader.jobs_of(claims, route)
        if route is None:  # forgotten between plan and claim
            await self._held.hand_back([claim.key for claim in claims])
        else:
            result = values.RecipientResult(values.Stage.ROUTE, detail=route.detail, permanent=route.permanent)
            await self._recorder.record_unroutable(claims, result)
        return []

    async def _prepare(self, jobs: Sequence[message_loader.Job]) -> None:
        """Read and sign what there is room for, a batch at once, and give all to their pools."""
        prefetched = dict.fromkeys(self._services.message_loader.choose_prefetch(jobs))

        def ready(job: message_loader.Job) -> None:
            del prefetched[job]
            self._provider_queue(job.route).add(job)

        for job in jobs:
            if job not in prefetched:
                self._provider_queue(job.route).add(job)
        try:
            if prefetched:
                await self._services.message_loader.prepare(list(prefetched), ready)
        except group_commit.TROUBLE as error:
            self._log.warning("jobs_not_prepared", jobs=len(prefetched), error=error.message)
        except Exception:  # noqa: BLE001 - the log gets it, and the jobs go back
            self._log.exception("jobs_not_prepared", jobs=len(prefetched))
        if prefetched:
            await self._hand_back_later(list(prefetched))

    async def _hand_back_later(self, jobs: Sequence[message_loader.Job]) -> None:
        await asyncio.sleep(ERROR_BACKOFF_SECONDS)
        for job in jobs:
            self._provider_queue(job.route).cancel_reserved(1)
            self._services.message_loader.release(job)
        await self._held.hand_back([key for job in jobs for key in job.keys])
