"""Which recipients are next, and by which route: walks the scheduled queues, and claims what can soon be sent.

A scheduled queue is a domain and an account (see storage/mail/queue.py). The walk continues where it stopped, and
scheduled queues of one provider queue share its capacity, so that each gets its turn. What a provider queue has no
capacity for, or an account no lease, stays in the database. What the operator holds is skipped. A destination whose
hosts are all down is skipped, too; only recipients at the end of their retry schedule are claimed, and fail.

Urgent recipients are claimed first in every step, wherever the walk is. Recipients whose own time is over are claimed,
and expire, wherever they are.
"""

import asyncio
import collections
import dataclasses
import random
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from postroad import config, context
from postroad.concurrency import caches
from postroad.delivery import attempter, controls, permits, provider_queue, recorder, routing, simulated_delivery
from postroad.model.bounces import disposition, failure_causes
from postroad.model.delivery import fair_shares, providers, retry
from postroad.network.dns import resolver
from postroad.protocol.smtp import values
from postroad.storage.engine import store
from postroad.storage.mail import queue, suppressions
from postroad.telemetry import logs

# Routes with their source addresses; an evicted one is only made again. At most 15 MB; 55 MB, or 240 MB with DANE, if
# the router has replaced all of them: an entry keeps its route.
MAX_ROUTES: Final = 10_000


class SourceChooser:
    """Chooses the source address of routes: one of the pool that may send now, with the least to do.

    Every source address has provider queues, and breakers of hosts, of its own: what a provider refuses to one
    address, or how much it accepts from it, says nothing about another. `queues` are the provider queues by
    `Route.queue_name`.
    """

    def __init__(
        self,
        sources: controls.SourceTable,
        known_hosts: routing.Hosts,
        queues: Mapping[str, provider_queue.ProviderQueue],
    ) -> None:
        self._sources = sources
        self._hosts = known_hosts
        self._queues = queues
        # By the identity of the route, which is kept, so that no other one gets it.
        self._routes: caches.LruCache[tuple[int, str], tuple[routing.Route, routing.Route | None]] = caches.LruCache(
            MAX_ROUTES
        )

    @property
    def are_configured(self) -> bool:
        return bool(self._sources.configured)

    def choose(self, route: routing.Route, pool: str) -> routing.Route | routing.NoRoute | None:
        """The route from a source address of the pool; None when there is none that may send now."""
        if not self._sources.configured:
            return route
        usable = self._sources.usable(pool, route.provider_queue)
        found = [candidate for source in usable if (candidate := self._from(source, route)) is not None]
        if not found:
            return self._unreachable(route, pool)
        open_ones = [candidate for candidate in found if self._hosts.blocked_until(candidate) is None]
        return min(open_ones or found, key=self._busyness)

    def _from(self, source: config.Source, route: routing.Route) -> routing.Route | None:
        """The route from a source address, with the hosts that it can reach; None when there are none."""
        key = (id(route), source.name)
        known = self._routes.get(key)
        if known is None or known[0] is not route:
            reached = [host for host in route.hosts if (":" in host.address) == source.is_ipv6]
            named = tuple(dataclasses.replace(host, source=source.name) for host in reached)
            known = (route, dataclasses.replace(route, hosts=named, source=source.name) if named else None)
            self._routes.put(key, known)
        return known[1]

    def _busyness(self, route: routing.Route) -> tuple[bool, bool, int, float]:
        route_queue = self._queues.get(route.queue_name)
        is_refused = self._sources.is_refused(route.source, route.provider_queue)
        return (
            (False, is_refused, 0, 0.0)
            if route_queue is None
            else (not route_queue.capacity_left(), is_refused, route_queue.load, route_queue.used_at)
        )

    def _unreachable(self, route: routing.Route, pool: str) -> routing.NoRoute | None:
        """Why no source address of the pool can ever reach the route; None when one may do so later."""
        every: Sequence[config.Source] = [source for source in self._sources.configured if source.pool == pool]
        if not every or any(self._from(source, route) is not None for source in every):
            return None
        detail = f"no source address of pool {pool} can reach {route.hosts[0].address}"
        return routing.NoRoute(values.Cause.DNS_FAILED, detail, route.valid_until)


class Choice(msgspec.Struct, frozen=True):
    """The route to take, whether its hosts may not be tried now, and the routes after it."""

    route: routing.Route | routing.NoRoute
    is_blocked: bool = False
    fallbacks: tuple[routing.Route, ...] = ()


class RouteChooser:
    """Chooses routes by the rules. `resolve` is called with a name to look up, and the account that asks."""

    def __init__(
        self,
        rules: Sequence[providers.RouteRule],
        router: routing.Router,
        known: routing.Hosts,
        sources: SourceChooser,
        *,
        clock: Callable[[], float],
        resolve: Callable[[str, str], None],
    ) -> None:
        self._rules = rules
        # What the first rule decides if it is for all mail, as where nobody has written any.
        is_for_all = not rules or rules[0].matches_everything
        self._only = providers.choose_route(rules[:1], account_id="", sender_domain="") if is_for_all else None
        # Source addresses take turns, so with them each scheduled queue has a choice of its own.
        self._is_by_domain = self._only is not None and not sources.are_configured
        self._is_direct = self._is_by_domain and self._only == providers.choose_route(
            (), account_id="", sender_domain=""
        )
        self._router = router
        self._hosts = known
        self._sources = sources
        self._clock = clock
        self._resolve = resolve

    def basis(self, queue_key: str) -> str:
        """What decides the choice for a scheduled queue: its domain, where rules and source addresses do not."""
        if self._is_by_domain and queue.simulation_of(queue_key) is None:
            return queue.domain_of(queue_key)
        return queue_key

    def choose(self, queue_key: str) -> Choice | None:
        """The choice for a scheduled queue; None while what it depends on is looked up, and always for test mail."""
        if queue.simulation_of(queue_key) is not None:
            return None
        if self._is_direct:
            known = self._known(queue.domain_of(queue_key), queue.account_of(queue_key))
            return None if known is None else Choice(known, is_blocked=self._is_blocked(known))
        domain, account_id, sender_domain, tag = queue.parts_of(queue_key)
        rule = self._only or providers.choose_route(
            self._rules, account_id=account_id, sender_domain=sender_domain, tag=tag
        )
        if rule is None:
            direct = self._known(domain, account_id)
            if not isinstance(direct, routing.Route):
                return None if direct is None else Choice(direct)
            rule = providers.choose_route(
                self._rules, account_id=account_id, sender_domain=sender_domain, tag=tag, provider=direct.provider
            )
        assert rule is not None  # noqa: S101 - the provider is given
        found = [
            self._known(domain if name == providers.DIRECT else providers.upstream_queue(name), account_id)
            for name in rule.upstreams
        ]
        return self._first_usable(found, rule.pool)

    def _known(self, name: str, account_id: str) -> routing.Route | routing.NoRoute | None:
        route = self._router.cached(name)
        if route is None or route.valid_until <= self._clock():  # a stale one is used while it is looked up
            self._resolve(name, account_id)
        return route

    def _first_usable(self, found: Sequence[routing.Route | routing.NoRoute | None], pool: str) -> Choice | None:
        first: Choice | None = None
        for place, known in enumerate(found):
            if known is None:
                break
            route = self._sources.choose(known, pool) if isinstance(known, routing.Route) else known
            if route is None:
                continue
            if isinstance(route, routing.Route):
                choice = Choice(route, is_blocked=self._is_blocked(route))
                if not choice.is_blocked:
                    rest = found[place + 1 :]
                    return Choice(route, fallbacks=self._fallbacks(rest, pool)) if rest else choice
            else:
                choice = Choice(route)
                if route.permanent:
                    return choice
            first = first or choice
        return first

    def _is_blocked(self, route: routing.Route | routing.NoRoute) -> bool:
        return isinstance(route, routing.Route) and self._hosts.blocked_until(route) is not None

    def _fallbacks(
        self, found: Sequence[routing.Route | routing.NoRoute | None], pool: str
    ) -> tuple[routing.Route, ...]:
        chosen = (self._sources.choose(route, pool) for route in found if isinstance(route, routing.Route))
        return tuple(route for route in chosen if isinstance(route, routing.Route))


class Plan(msgspec.Struct):
    """What to claim in one step; `expired` are scheduled queues of which only expired recipients are claimed."""

    wanted: list[queue.ClaimRequest] = msgspec.field(default_factory=list)
    expired: set[str] = msgspec.field(default_factory=set)


class Claims(msgspec.Struct, frozen=True):
    """What was claimed in one step, and which of the addresses are suppressed, or have left the list of the message."""

    rows: Sequence[queue.Claimed] = ()
    suppressed: Mapping[suppressions.SuppressionKey, suppressions.Suppression] = msgspec.field(default_factory=dict)
    # Recipients whose time is over.
    expired: Sequence[queue.Expired] = ()
    unsubscribed: Collection[suppressions.ListKey] = ()

    def are_all_of(self, plan: Plan) -> bool:
        """Whether nothing is left of it: a scheduled queue that gave as many as were asked for may have more."""
        return not self.expired and len(self.rows) < min((request.limit for request in plan.wanted), default=1)


# Scheduled queues examined in one step: a few microseconds each.
MAX_QUEUES_PER_STEP: Final = 500
# Rows claimed in one step, over all provider queues: the transaction stays short.
MAX_CLAIMS_PER_STEP: Final = 500
# The minimum of them per provider queue, so that recipients of one message mostly stay together.
MIN_SHARE: Final = 10
MAX_PROMOTIONS_PER_STEP: Final = 2_000
# Concurrent lookups, which accounts share; other domains wait in the database. Each begins with two queries, which
# should not have to wait for those of other lookups: another account may want the same domain.
MAX_CONCURRENT_LOOKUPS: Final = resolver.MAX_CONCURRENT_QUERIES // 2
# How often a blocked destination is searched for expired recipients.
EXPIRY_SEARCH_SECONDS: Final = 30.0
# How many of those searches are cached; an evicted one is only repeated.
MAX_SEARCHED_QUEUES: Final = 10_000
# A recipient that lost this many leases may crash its workers, so it is deferred to its next attempt.
MAX_LOST_LEASES: Final = 10
# After a bug or a database outage, repeating at once would not help.
ERROR_BACKOFF_SECONDS: Final = 1.0


class Dispatcher:
    """Claims due recipients and assigns them to provider queues."""

    def __init__(
        self,
        ctx: context.Context,
        router: routing.Router,
        known: routing.Hosts,
        services: provider_queue.DeliveryServices,
    ) -> None:
        self._ctx = ctx
        self._router = router
        self._hosts = known
        self.provider_queues = provider_queue.ProviderQueues(services, fall_back=self._fall_back)
        sources = SourceChooser(services.sources, known, self.provider_queues.by_name)
        self._route_chooser = RouteChooser(
            ctx.settings.route_rules, router, known, sources, clock=services.clock, resolve=self._resolve
        )
        self._services, self._log = services, services.log
        self._warnings = logs.LimitedWarnings(services.log, ctx.clock)
        self._leases: recorder.Leases = services.leases
        self._recorder: recorder.Recorder = services.recorder
        self._simulated_delivery = simulated_delivery.SimulatedDelivery(ctx, services.recorder, services.log)
        self._lifetime = retry.lifetime(ctx.settings.delivery.retry_seconds)
        self._holds: controls.HoldCache = services.holds
        self._cursor = self._urgent_cursor = ""
        self._has_found_work = False
        self.has_claimed_all = False  # whether the last step has left nothing that it could have claimed
        self._resolving: dict[str, asyncio.Task[None]] = {}
        self._lookups = fair_shares.FairShares(MAX_CONCURRENT_LOOKUPS)
        self._preparations: set[asyncio.Task[None]] = set()
        # Provider queues that have had urgent jobs since they were last searched for expired ones.
        self._urgent: set[provider_queue.ProviderQueue] = set()
        self._next_expiry_search: caches.LruCache[str, float] = caches.LruCache(MAX_SEARCHED_QUEUES)

    @property
    def is_round_over(self) -> bool:
        return not self._cursor

    async def step(self) -> bool:
        """Claim what can be sent; False at the end of a round through all scheduled queues that found nothing."""
        now, leases_until = self._ctx.clock(), self._services.trusted_clock()
        is_whole_round, self._leases.leaves_ready = self.is_round_over, True
        async with self._ctx.store.looking_up() as tx:
            await self._holds.refresh(tx)
            await self._services.sources.refresh(tx)
            work = await queue.find_work(tx, now=now, leases_until=leases_until)
            urgent_keys: list[str] = []
            if work.is_urgent:
                urgent_keys = await queue.urgent_keys(tx, after=self._urgent_cursor, limit=MAX_QUEUES_PER_STEP)
            queue_keys = await queue.queue_keys(tx, after=self._cursor, limit=MAX_QUEUES_PER_STEP)
        if self._urgent:
            await self._release_expired(leases_until)
        plan = self._plan(self._claimable(queue_keys))
        self._plan_urgent(plan, self._without_held(urgent_keys))
        claimed = Claims()
        try:
            if plan.wanted or work.is_due or work.is_expired:
                claimed = await self._claim(plan, work, now=now, leases_until=leases_until)
        finally:
            self._leases.end_reservations()
        # Those that cannot be sent now, however many, must not hide the others.
        self._urgent_cursor = "" if len(urgent_keys) < MAX_QUEUES_PER_STEP else urgent_keys[-1]
        self._cursor = "" if len(queue_keys) < MAX_QUEUES_PER_STEP else queue_keys[-1]
        self.has_claimed_all = self.is_round_over and not work.is_due and claimed.are_all_of(plan)
        # Asked for in full: each scheduled queue has one request, and none is for urgent or expired recipients alone.
        is_full_plan = len(plan.wanted) == len(queue_keys) and not (urgent_keys or plan.expired)
        if is_whole_round and is_full_plan and self.has_claimed_all:
            self._leases.leaves_ready = False
        await self._assign(claimed, plan)
        if claimed.expired:
            await self._recorder.record_expired(claimed.expired)
        self._has_found_work = self._has_found_work or work.is_due or bool(claimed.rows or claimed.expired)
        if not self.is_round_over:
            return True
        has_found_work, self._has_found_work = self._has_found_work, False
        return has_found_work

    async def stop(self) -> None:
        """Release what was not begun, and finish what was."""
        for task in self._resolving.values():
            task.cancel()
        if self._preparations:
            await asyncio.wait(self._preparations)
        await self._simulated_delivery.finish()
        left = [job.key for route_queue in self.provider_queues.by_name.values() for job in route_queue.close()]
        if left:
            await self._leases.release(left)
        await asyncio.gather(*(route_queue.finish() for route_queue in self.provider_queues.by_name.values()))

    def _without_held(self, queue_keys: Sequence[str]) -> Sequence[str]:
        return [key for key in queue_keys if not self._holds.covers(key)] if self._holds.has_any else queue_keys

    def _claimable(self, queue_keys: Sequence[str]) -> list[str]:
        """Without those of an account that may hold no more: it must not take the turns of others."""
        found = [(key, queue.account_of(key)) for key in self._without_held(queue_keys)]
        with_room = self._leases.with_room({account_id for _, account_id in found})
        return [key for key, account_id in found if account_id in with_room]

    def _plan(self, queue_keys: Sequence[str]) -> Plan:
        """How many of each scheduled queue; those of one provider queue share its capacity."""
        self.provider_queues.drop_idle()
        plan = Plan()
        by_provider_queue: dict[provider_queue.ProviderQueue, dict[str, routing.Route]] = collections.defaultdict(dict)
        ending: list[tuple[str, int]] = []
        for alike, choice in self._choices(queue_keys):
            route = choice.route
            if isinstance(route, routing.NoRoute):
                ending += [(queue_key, queue.ANY_TIME) for queue_key in alike]
            elif choice.is_blocked:
                self.provider_queues.of(route)
                # An upstream is a part of this installation: mail waits until it is back.
                if not route.is_upstream:
                    with_expired = [queue_key for queue_key in alike if self._may_hold_expired(queue_key)]
                    plan.expired.update(with_expired)
                    ending += [(queue_key, self._ctx.clock() - self._lifetime) for queue_key in with_expired]
            else:
                by_provider_queue[self.provider_queues.of(route)].update(dict.fromkeys(alike, route))
        room = {route_queue: left for route_queue in by_provider_queue if (left := route_queue.capacity_left())}
        most = max(MIN_SHARE, MAX_CLAIMS_PER_STEP // max(1, len(room) + len(ending)))
        # By chance: an account may have leases left for only a few of them.
        for route_queue in random.sample(list(room), len(room)):
            self._share(plan, route_queue, by_provider_queue[route_queue], room=min(room[route_queue], most))
        # Last, because most of these find nothing.
        for queue_key, queued_before in ending:
            self._want(plan, queue.ClaimRequest(queue_key, most, queued_before), fair_shares.ALPHA)
        # Asked first without a call: few installations have any.
        candidates = [key for key in queue_keys if key.startswith(queue.SIMULATOR_DOMAIN)]
        if simulated := [key for key in candidates if queue.simulation_of(key) is not None]:
            plan.wanted += self._simulated_delivery.claim_requests(simulated)
        return plan

    def _choices(self, queue_keys: Sequence[str]) -> Iterator[tuple[list[str], Choice]]:
        """The choices that are known, and for which scheduled queues each is."""
        by_basis: dict[str, list[str]] = {}
        for queue_key in queue_keys:
            by_basis.setdefault(self._route_chooser.basis(queue_key), []).append(queue_key)
        for alike in by_basis.values():
            # The first that may ask: an account that has too many lookups leaves the domain to the next one.
            for queue_key in alike:
                if (choice := self._route_chooser.choose(queue_key)) is not None:
                    yield alike, choice
                    break

    def _plan_urgent(self, plan: Plan, queue_keys: Sequence[str]) -> None:
        """How many urgent ones of each scheduled queue, beside what its provider queue has of others."""
        for queue_key in queue_keys:
            choice = self._route_chooser.choose(queue_key)
            if choice is None or not isinstance(choice.route, routing.Route) or choice.is_blocked:
                continue  # the walk comes to it
            if room := self.provider_queues.of(choice.route).urgent_left(queue.account_of(queue_key)):
                self._want(plan, queue.ClaimRequest(queue_key, room, is_urgent=True), recorder.URGENT_ALPHA)

    def _share(
        self, plan: Plan, route_queue: provider_queue.ProviderQueue, routes: Mapping[str, routing.Route], *, room: int
    ) -> None:
        # With more scheduled queues than capacity, a random choice lets each get its turn.
        chosen = list(routes) if len(routes) <= room else random.sample(list(routes), room)
        share = room // len(chosen)
        # As with connections, what waits for slow destinations does not hold up the rest of an account's mail.
        alpha = fair_shares.ALPHA if route_queue.is_responsive else permits.SLOW_ALPHA
        for queue_key in chosen:
            is_proven = self._hosts.is_proven(routes[queue_key])
            self._want(plan, queue.ClaimRequest(queue_key, share if is_proven else 1), alpha)

    def _want(self, plan: Plan, request: queue.ClaimRequest, alpha: float) -> None:
        """Claim from a scheduled queue, no more than its account may hold."""
        if limit := self._leases.reserve(queue.account_of(request.queue_key), request.limit, alpha):
            plan.wanted.append(msgspec.structs.replace(request, limit=limit))

    def _may_hold_expired(self, queue_key: str) -> bool:
        """Whether the scheduled queue of a blocked destination is due for a search for expired recipients.

        After a hold, everything gets a new retry period first: nothing expires because it was held.
        """
        now = self._services.clock()
        was_held = self._holds.was_released_since(queue_key, self._ctx.clock() - self._lifetime)
        if was_held or now < (self._next_expiry_search.get(queue_key) or 0.0):
            return False
        self._next_expiry_search.put(queue_key, now + EXPIRY_SEARCH_SECONDS)
        return True

    async def _release_expired(self, now: int) -> None:
        """Release urgent jobs that wait in memory beyond their time, such as for a connection."""
        expired = [job for route_queue in self._urgent for job in route_queue.remove_expired(now)]
        self._urgent = {route_queue for route_queue in self._urgent if route_queue.capacity.has_urgent}
        for job in expired:
            self._services.message_loader.release(job)
        if expired:
            await self._leases.release([job.key for job in expired])

    def _fall_back(self, job: attempter.Job, error: str) -> bool:
        """Assign a job to the next of its upstreams that can take it; False when there is none."""
        for place, route in enumerate(job.fallbacks):
            route_queue = self.provider_queues.of(route)
            if self._hosts.blocked_until(route) is None and not route_queue.is_paused:
                self._warnings.warning(
                    "upstream_fallback",
                    job.route.provider_queue,
                    provider_queue=job.route.provider_queue,
                    fallback=route.provider_queue,
                    error=error,
                )
                next_job = attempter.Job(job.claim, route, fallbacks=job.fallbacks[place + 1 :])
                route_queue.capacity.reserve([next_job])
                route_queue.add(next_job)
                return True
        return False

    def _resolve(self, domain: str, account_id: str) -> None:
        party = fair_shares.Party(account_id)
        if domain in self._resolving or not self._lookups.has_share(party):
            return
        self._lookups.add((party,))
        task = asyncio.get_running_loop().create_task(self._look_up(domain, account_id))
        task.add_done_callback(lambda _: self._lookups.give_back((party,)))
        self._resolving[domain] = task

    async def _look_up(self, domain: str, account_id: str) -> None:
        resolver.asker.set(account_id)
        try:
            await self._router.route(domain)
        except store.UNAVAILABLE as error:
            self._log.warning("routing_failed", domain=domain, error=error.message)
            await asyncio.sleep(ERROR_BACKOFF_SECONDS)
        except Exception:  # noqa: BLE001 - logged; the domain waits
            self._log.exception("routing_failed", domain=domain)
            await asyncio.sleep(ERROR_BACKOFF_SECONDS)
        finally:
            del self._resolving[domain]
            self._services.wake()

    async def _claim(self, plan: Plan, work: queue.Work, *, now: int, leases_until: int) -> Claims:
        worker, rows, expired = self._leases.worker, list[queue.Claimed](), list[queue.Expired]()
        async with self._ctx.store.leasing() as tx:
            if work.is_due:
                await queue.promote(tx, now=now, limit=MAX_PROMOTIONS_PER_STEP, leases_until=leases_until)
            if work.is_expired:
                expired = await queue.claim_expired(
                    tx, now=leases_until, limit=MAX_CLAIMS_PER_STEP, lease_until=self._leases.until(), worker=worker
                )
            if plan.wanted:
                rows = await queue.claim(tx, plan.wanted, lease_until=self._leases.until(), worker=worker)
            suppressed = await suppressions.find(tx, [(row.account_id, row.email_key) for row in rows])
            lists = [(row.account_id, row.list_name, row.email_key) for row in rows if row.list_name is not None]
            unsubscribed = await suppressions.find_left(tx, lists) if lists else ()
        self._leases.take(recipient.claim for recipient in expired)
        return Claims(self._leases.take(rows), suppressed, expired, unsubscribed)

    async def _assign(self, claimed: Claims, plan: Plan) -> None:
        for claim in claimed.rows:
            if claim.lost_leases:
                self._ctx.metrics.lost_leases.add()
                self._log.warning(
                    "previous_attempt_unrecorded", message_id=claim.message_id, recipient_id=claim.recipient_id
                )
        by_basis: dict[str, list[queue.Claimed]] = collections.defaultdict(list)
        wanted = await self._bounce_suppressed(claimed)
        if claimed.unsubscribed:
            wanted = await self._bounce_unsubscribed(wanted, claimed.unsubscribed)
        for claim in await self._defer_crashing(wanted):
            is_expired = claim.queue_key in plan.expired
            by_basis[claim.queue_key if is_expired else self._route_chooser.basis(claim.queue_key)].append(claim)
        jobs: dict[attempter.Job, provider_queue.ProviderQueue] = {}
        for claims in by_basis.values():
            queue_key = claims[0].queue_key
            if queue.simulation_of(queue_key) is not None:
                self._simulated_delivery.begin(claims)
            elif queue_key in plan.expired:
                await self._fail_expired(queue_key, claims)
            else:
                jobs |= await self._jobs(queue_key, claims)
        self._start(jobs)

    def _start(self, jobs: Mapping[attempter.Job, provider_queue.ProviderQueue]) -> None:
        """Prepare jobs, for which capacity of their provider queues is reserved."""
        urgent = {job: route_queue for job, route_queue in jobs.items() if job.is_urgent}
        self._urgent.update(urgent.values())
        others = {job: route_queue for job, route_queue in jobs.items() if not job.is_urgent} if urgent else jobs
        # Urgent ones do not wait until all others are signed.
        for together in (urgent, others):
            if together:
                task = asyncio.get_running_loop().create_task(self._prepare(together))
                self._preparations.add(task)
                task.add_done_callback(self._preparations.discard)

    async def _bounce_suppressed(self, claimed: Claims) -> Sequence[queue.Claimed]:
        """Bounce suppressed recipients without an attempt; returns the others."""
        listed = claimed.suppressed
        to_bounce = [claim for claim in claimed.rows if (claim.account_id, claim.email_key) in listed]
        if not to_bounce:
            return claimed.rows
        found = [listed[claim.account_id, claim.email_key] for claim in to_bounce]
        sentences = [
            f"not attempted: the address is on the suppression list ({suppression.reason})" for suppression in found
        ]
        await self._recorder.record_without_attempt(to_bounce, disposition.Verdict.BOUNCED, sentences)
        return [claim for claim in claimed.rows if (claim.account_id, claim.email_key) not in listed]

    async def _bounce_unsubscribed(
        self, claims: Sequence[queue.Claimed], left: Collection[suppressions.ListKey]
    ) -> Sequence[queue.Claimed]:
        """The same for recipients who have left the list of their message."""
        to_bounce = [claim for claim in claims if (claim.account_id, claim.list_name, claim.email_key) in left]
        sentences = [f"not attempted: the recipient unsubscribed from {claim.list_name}" for claim in to_bounce]
        cause = failure_causes.UNSUBSCRIBED
        await self._recorder.record_without_attempt(to_bounce, disposition.Verdict.BOUNCED, sentences, cause=cause)
        return [claim for claim in claims if (claim.account_id, claim.list_name, claim.email_key) not in left]

    async def _defer_crashing(self, claims: Sequence[queue.Claimed]) -> Sequence[queue.Claimed]:
        """Defer recipients that have lost too many leases; returns the others."""
        crashing = [claim for claim in claims if claim.lost_leases >= MAX_LOST_LEASES]
        if not crashing:
            return claims
        await self._recorder.record_unroutable(crashing, attempter.WORKER_CRASHES)
        return [claim for claim in claims if claim.lost_leases < MAX_LOST_LEASES]

    async def _fail_expired(self, queue_key: str, claims: Sequence[queue.Claimed]) -> None:
        self._next_expiry_search.discard(queue_key)  # search again: there may be more
        choice = self._route_chooser.choose(queue_key)
        route = choice.route if choice is not None else None
        known = self.provider_queues.by_name.get(route.queue_name) if isinstance(route, routing.Route) else None
        whose = f"the mail servers of {queue.domain_of(queue_key)}"
        sentence = f"{whose} were unreachable until the retry schedule ended: {known.last_error if known else ''}"
        sentences = [sentence.rstrip(": ")] * len(claims)
        await self._recorder.record_without_attempt(claims, disposition.Verdict.FAILED, sentences)

    async def _jobs(
        self, queue_key: str, claims: Sequence[queue.Claimed]
    ) -> dict[attempter.Job, provider_queue.ProviderQueue]:
        """Jobs with their provider queues, whose capacity they have from now on."""
        choice = self._route_chooser.choose(queue_key)
        route = choice.route if choice is not None else None
        if choice is not None and isinstance(route, routing.Route):
            begun, rest = self._services.sources.take(route, claims)
            jobs, route_queue = attempter.jobs_of(begun, route, choice.fallbacks), self.provider_queues.of(route)
            route_queue.capacity.reserve(jobs)
            return dict.fromkeys(jobs, route_queue) | (await self._jobs(queue_key, rest) if rest else {})
        if not isinstance(route, routing.NoRoute):  # dropped from the cache between plan and claim
            await self._leases.release([claim.key for claim in claims])
        else:
            result = values.RecipientResult(values.Stage.ROUTE, cause=route.cause, detail=route.detail)
            await self._recorder.record_unroutable(claims, result)
        return {}

    async def _prepare(self, jobs: Mapping[attempter.Job, provider_queue.ProviderQueue]) -> None:
        """Load and sign as many messages as fit, in one batch, and assign all jobs to their provider queues."""
        prefetched = dict.fromkeys(self._services.message_loader.choose_prefetch(jobs))

        def ready(job: attempter.Job) -> None:
            del prefetched[job]
            jobs[job].add(job)

        for job, route_queue in jobs.items():
            if job not in prefetched:
                route_queue.add(job)
        try:
            if prefetched:
                await self._services.message_loader.prepare(list(prefetched), ready)
        except store.UNAVAILABLE as error:
            self._log.warning("batch_load_failed", jobs=len(prefetched), error=error.message)
        except Exception:  # noqa: BLE001 - logged; the jobs are released
            self._log.exception("batch_load_failed", jobs=len(prefetched))
        if prefetched:
            await self._release_later(list(prefetched))

    async def _release_later(self, jobs: Sequence[attempter.Job]) -> None:
        await asyncio.sleep(ERROR_BACKOFF_SECONDS)
        for job in jobs:
            self.provider_queues.of(job.route).capacity.cancel_reserved(job)
            self._services.message_loader.release(job)
        await self._leases.release([job.key for job in jobs])
