"""Which deliveries next: endpoint after endpoint, as many of each as its account has places for.

Only what can be begun at once is claimed, so that a claim is an attempt. URL and secrets are read in the same
transaction: nobody is told at an address that was changed before. The walk through the endpoints goes on behind those
that got something last. Within a step new accounts come first, then those that have waited longest. A step whose
accounts can have no place takes nothing, and the walk goes on: so everybody's turn comes, whoever stands before them.
"""

import collections
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from postroad.model import expiry, shares, times, webhook_schedule
from postroad.services import context, receivers, telling
from postroad.storage import group_commit, store, webhook_attempts, webhook_deliveries, webhooks
from postroad.telemetry import logs
from postroad.webhooks import attempting, recording

# Endpoints that are looked at in one step: a few microseconds each.
ENDPOINTS: Final = 500
# For each endpoint that was looked at in vain, four times what the look has cost: a long list of endpoints that are
# disabled, or have no place, does not become a busy loop.
REST_SECONDS: Final = 0.000_02
# Rows that are made ready in one step: the transaction stays short.
PROMOTIONS: Final = 1_000
LOST: Final = f"{receivers.Code.INTERRUPTED}: the worker of this attempt was lost before it could tell the answer"

Plan = Mapping[str, Sequence[shares.Place]]  # by endpoint


@dataclass(frozen=True, slots=True)
class Taken:
    """What one step has taken from the store."""

    claims: Sequence[attempting.Claim] = ()
    lease_until: int = 0
    promoted: Sequence[webhook_deliveries.Promoted] = ()


@dataclass(slots=True)
class Walk:
    """Where the walk through the endpoints is. It ends when it comes round to where something was had the last time."""

    after: str = ""
    began_after: str = field(default="", init=False)
    has_turned: bool = field(default=False, init=False)

    def go_on(self, found: Sequence[str], *, is_fruitful: bool) -> bool:
        """Behind what was just looked at; False when all have been looked at and nothing was had."""
        self.after = found[-1] if len(found) >= ENDPOINTS else ""
        if is_fruitful:
            self.began_after, self.has_turned = self.after, False
            return True
        is_at_end = not self.after
        is_round = self.has_turned and (is_at_end or self.after >= self.began_after)
        if is_round or (is_at_end and not self.began_after):
            self.after, self.has_turned = self.began_after, False
            return False
        self.has_turned = self.has_turned or is_at_end
        return True


class Dispatching:
    """Takes due deliveries from the store and has them attempted."""

    def __init__(
        self,
        ctx: context.Context,
        places: shares.Shares,
        attempts: attempting.Attempting,
        results: recording.Recording,
        *,
        worker: str,
        clock: Callable[[], float],
        log: logs.Logger,
    ) -> None:
        self._ctx = ctx
        self._shares = places
        self._attempting = attempts
        self._recording = results
        self._worker = worker
        self._clock = clock
        self._log = log
        self._attempts = webhook_schedule.attempts(ctx.settings.webhooks.retry_seconds)
        self._lease = ctx.settings.webhooks.lease_seconds * times.SECOND
        self._expiry = expiry.Expiry(self._lease)
        self._walk = Walk()
        self._looked_in_vain = 0
        self._is_stopping = False

    def stop(self) -> None:
        """Begin nothing more; what is being claimed goes back."""
        self._is_stopping = True

    async def step(self) -> float | None:
        """Take what can be taken now; after a round through all endpoints that brought nothing, how long to rest."""
        if self._is_stopping or not self._has_room():
            return 0.0
        now = self._ctx.clock()
        async with self._ctx.store.reading() as tx:
            is_due = await webhook_deliveries.is_due(tx, now=now, leases_until=self._leases_until(now))
            found = await webhook_deliveries.endpoints(tx, after=self._walk.after, most=ENDPOINTS)
            enabled = await webhooks.enabled(tx, found)
        plan = self._plan(enabled)
        taken = await self._take(plan, now=now, is_due=is_due) if plan or is_due else Taken()
        self._tell_lost(taken.promoted)
        await self._begin(taken, plan)
        return self._go_on(found, is_fruitful=bool(taken.claims or taken.promoted))

    def _go_on(self, found: Sequence[str], *, is_fruitful: bool) -> float | None:
        self._looked_in_vain = 0 if is_fruitful else self._looked_in_vain + len(found)
        if self._walk.go_on(found, is_fruitful=is_fruitful):
            return None
        looked, self._looked_in_vain = self._looked_in_vain, 0
        return looked * REST_SECONDS

    def _leases_until(self, now: int) -> int:
        return self._expiry.until(now=now, steady=self._clock())

    def _has_room(self) -> bool:
        """Whether anything can be begun. Recording wakes the walk by itself when it can take results again."""
        if not self._shares.free:
            self._attempting.is_awaited = True
        return self._shares.free > 0 and not self._recording.is_full

    def _plan(self, enabled: Mapping[str, webhooks.Webhook]) -> Plan:
        """Places for the endpoints: one for each in turn, and again, until nobody can have more."""
        now = self._clock()
        self._shares.look(now=now)
        endpoint_of = {webhook.account_id: webhook.id for webhook in enabled.values()}
        plan: dict[str, list[shares.Place]] = collections.defaultdict(list)
        asking = self._shares.in_turn(endpoint_of)
        while asking:
            places = [place for account_id in asking if (place := self._shares.take(account_id, now=now))]
            for place in places:
                plan[endpoint_of[place.account_id]].append(place)
            asking = [place.account_id for place in places]
        if len(plan) < len(endpoint_of):
            self._attempting.is_awaited = True
        return plan

    async def _take(self, plan: Plan, *, now: int, is_due: bool) -> Taken:
        wanted = [(webhook_id, len(places)) for webhook_id, places in plan.items()]
        lease_until = self._ctx.clock() + self._lease
        try:
            async with self._ctx.store.transaction() as tx:
                promoted = await self._promote(tx, now=now) if is_due else []
                claimed = await webhook_deliveries.claim(tx, wanted, lease_until=lease_until, worker=self._worker)
                claims = await self._address(tx, claimed, now=now)
        except BaseException:
            for places in plan.values():
                self._shares.give_back(places)
            raise
        return Taken(claims, lease_until, promoted)

    async def _promote(self, tx: store.Transaction, *, now: int) -> list[webhook_deliveries.Promoted]:
        """Make ready what is due. An attempt that a lost worker left is written down: it was counted."""
        promoted = await webhook_deliveries.promote(
            tx, now=now, attempts=self._attempts, most=PROMOTIONS, leases_until=self._leases_until(now)
        )
        await webhook_attempts.insert(tx, [self._lost_attempt(row) for row in promoted if row.worker is not None])
        return promoted

    async def _address(
        self, tx: store.Transaction, claimed: Sequence[webhook_deliveries.Claimed], *, now: int
    ) -> list[attempting.Claim]:
        """Where the claimed go and what signs them. What has no endpoint any more goes back."""
        enabled = await webhooks.enabled(tx, {row.webhook_id for row in claimed})
        secrets: dict[str, list[webhooks.Secret]] = collections.defaultdict(list)
        for secret in await webhooks.secrets(tx, list(enabled), now=now):
            secrets[secret.webhook_id].append(secret)
        gone = [row.key for row in claimed if row.webhook_id not in secrets]
        if gone:
            await webhook_deliveries.hand_back(tx, gone, worker=self._worker)
        return [
            attempting.Claim(row, enabled[row.webhook_id].url, secrets[row.webhook_id])
            for row in claimed
            if row.webhook_id in secrets
        ]

    async def _begin(self, taken: Taken, plan: Plan) -> None:
        """Give each claim its place, and what is left of the places back."""
        left = {webhook_id: list(places) for webhook_id, places in plan.items()}
        # A process that stood still, or waited for the store, may not begin what another worker may soon take.
        is_safe = self._ctx.clock() < taken.lease_until - self._lease // 2
        claims = taken.claims if is_safe and not self._is_stopping else ()
        for claim in claims:
            self._attempting.begin(claim, left[claim.claimed.webhook_id].pop())
        for places in left.values():
            self._shares.give_back(places)
        if len(claims) < len(taken.claims):
            await self._hand_back([claim.claimed.key for claim in taken.claims])

    async def _hand_back(self, keys: Sequence[webhook_deliveries.Key]) -> None:
        try:
            async with self._ctx.store.transaction() as tx:
                await webhook_deliveries.hand_back(tx, keys, worker=self._worker)
        except group_commit.TROUBLE as trouble:
            # Then they come back by time.
            self._log.warning("webhooks_not_handed_back", deliveries=len(keys), error=trouble.message)

    def _lost_attempt(self, row: webhook_deliveries.Promoted) -> webhook_attempts.Attempt:
        # How long it took, nobody knows.
        attempted = telling.Attempted(row.due_at - self._lease, duration=0, answer=receivers.Answer(error=LOST))
        return telling.log_entry((row.account_id, row.webhook_id, row.id), row.attempt_count, attempted)

    def _tell_lost(self, promoted: Sequence[webhook_deliveries.Promoted]) -> None:
        for row in promoted:
            if row.worker is not None:
                has_failed = row.state == webhook_deliveries.State.FAILED
                state = webhook_deliveries.State.FAILED if has_failed else webhook_deliveries.State.WAITING
                event, result = recording.TOLD[state]
                self._ctx.metrics.webhook_attempts.add(result)
                self._log.warning(event, delivery_id=row.id, error=LOST, attempt=row.attempt_count)
