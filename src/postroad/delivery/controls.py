"""Holds, changed limits and source addresses, as this process knows them: read once in a poll, not with every claim.

A hold, a pause or a limit takes effect within a poll. Attempts under way finish; what was claimed and not begun is
released.
"""

import collections
from collections.abc import Callable, Container, Sequence
from typing import Final

import msgspec

from postroad import config, context
from postroad.concurrency import caches
from postroad.delivery import routing
from postroad.model.delivery import adaptive_rate, providers
from postroad.model.domains import warmup
from postroad.model.units import times
from postroad.network import probe
from postroad.services.queue import sources as source_services
from postroad.storage.engine import store
from postroad.storage.mail import delivery_controls, mail_counts, queue
from postroad.storage.mail.delivery_controls import SourceStatus


class ChangedLimits(msgspec.Struct, frozen=True):
    """The limits of a provider queue that an operator has changed."""

    connections: int
    messages_per_second: int
    messages_per_connection: int


class HoldCache:
    """The holds, and the changes of provider queues, at the last read."""

    def __init__(self, ctx: context.Context, clock: Callable[[], float]) -> None:
        self._ctx = ctx
        self._clock = clock
        self._seconds = ctx.settings.testing.poll_milliseconds / 1000
        self._valid_until = float("-inf")
        self._in_force: delivery_controls.Holds = {}
        self._released: delivery_controls.Holds = {}
        self._overrides: delivery_controls.Overrides = {}
        self.has_any = False  # a hold or an override

    async def refresh(self, tx: store.Transaction) -> None:
        """Read them, unless they were read a moment ago."""
        if (now := self._clock()) < self._valid_until:
            return
        found = await delivery_controls.listed_holds(tx)
        changes = await delivery_controls.listed_overrides(tx)
        self._valid_until = now + self._seconds
        self._in_force = delivery_controls.hold_by_key(found, in_force=True)
        self._released = delivery_controls.hold_by_key(found, in_force=False)
        self._overrides = delivery_controls.overrides_in_force(changes, now=self._ctx.clock())
        self.has_any = bool(self._in_force or self._overrides)

    def covers(self, queue_key: str) -> bool:
        return delivery_controls.holds_covering(self._in_force, queue_key) is not None

    def was_released_since(self, queue_key: str, since: int) -> bool:
        """Whether a scheduled queue was held until after a time."""
        recent = {key: hold for key, hold in self._released.items() if (hold.released_at or 0) > since}
        return delivery_controls.holds_covering(recent, queue_key) is not None

    def is_paused(self, provider_queue: str) -> bool:
        override = delivery_controls.overrides_covering(self._overrides, provider_queue)
        return override is not None and bool(override.paused)

    def limits(self, provider_queue: str, of_settings: adaptive_rate.Limits) -> adaptive_rate.Limits:
        """The limits in force: those of the settings, unless an operator has changed them."""
        override = delivery_controls.overrides_covering(self._overrides, provider_queue)
        if override is None:
            return of_settings
        return ChangedLimits(
            override.connections or of_settings.connections,
            override.messages_per_second or of_settings.messages_per_second,
            override.messages_per_connection or of_settings.messages_per_connection,
        )


# How often a host looks which addresses it has.
OWN_SECONDS: Final = 10.0
UNLIMITED: Final = 2**31
# How long a refusal is remembered: longer than the first delays of the retry schedule, so that a message that was
# refused to one address leaves from another.
REFUSED_SECONDS: Final = 3600.0
# Pairs with a refusal; a forgotten one is tried again.
MAX_REFUSED: Final = 10_000
_Pair = tuple[str, str]  # source address and provider


class SourceTable:
    """The source addresses of this host, and their states at the last read.

    All hosts may have the same `[[sources]]`, and an address may move to another host, so each host looks which of
    them it has. Mail whose pool has none that may send stays in the store, where another host may claim it.

    An address that a provider queue refuses because of the address is used last for it, for a while. A message that
    such a refusal would end is tried again if there is another one.

    An address that warms up sends no more to a provider in a day than its schedule has. What this process has
    claimed counts as sent until its results are stored. Processes that share an address see each other's results
    within a poll.
    """

    def __init__(
        self,
        ctx: context.Context,
        leases: Container[queue.Key],
        clock: Callable[[], float],
        *,
        can_bind: Callable[[str], bool] = probe.can_bind,
    ) -> None:
        self.configured: Final = ctx.settings.sources
        self._ctx = ctx
        self._leases = leases
        self._clock = clock
        self._can_bind = can_bind
        self._seconds = ctx.settings.testing.poll_milliseconds / 1000
        self._looked_at = self._read_at = float("-inf")
        self._here: tuple[config.Source, ...] = ()
        self._states: dict[_Pair, set[str]] = {}
        # When warm-ups began, what is left of today for each provider, and claims whose results are not stored yet.
        self._warming: dict[str, int] = {}
        self._left: dict[_Pair, int] = {}
        self._pending: dict[queue.Key, _Pair] = {}
        # By source address and provider queue: until when a refusal counts.
        self._refused: caches.LruCache[_Pair, float] = caches.LruCache(MAX_REFUSED)

    async def refresh(self, tx: store.Transaction) -> None:
        """Read the states, and look which addresses this host has, unless that was a moment ago."""
        now = self._clock()
        if not self.configured or now < self._read_at + self._seconds:
            return
        if now >= self._looked_at + OWN_SECONDS:
            self._looked_at = now
            self._here = tuple(source for source in self.configured if self._can_bind(source.address))
        # Before the counts are read: what is stored in between counts twice until the next read, and never not at all.
        self._pending = {key: pair for key, pair in self._pending.items() if key in self._leases}
        states = delivery_controls.source_states_in_force(
            await delivery_controls.listed_source_states(tx), now=self._ctx.clock()
        )
        self._warming = {state.source: state.set_at for state in states if state.state == SourceStatus.WARMING}
        counts: Sequence[mail_counts.SourceCount] = ()
        if self._warming:
            counts = await mail_counts.sources_since(tx, times.day_of(min(self._warming.values())))
        self._read_at = now
        self._states = collections.defaultdict(set)
        for state in states:
            self._states[state.source, state.provider].add(state.state)
        self._left = {
            (source, provider): self._allowance((source, provider), counts)
            for source in self._warming
            for provider in providers.PROVIDERS
        }
        for pair in self._pending.values():
            if pair in self._left:
                self._left[pair] -= 1

    def usable(self, pool: str, provider_queue: str) -> Sequence[config.Source]:
        """The source addresses of a pool that this host may claim mail for now."""
        return [
            source
            for source in self._here
            if source.pool == pool
            and not self._is(SourceStatus.DRAINING, source.name)
            and not self.is_paused(source.name, provider_queue)
            and self.room(source.name, provider_queue) > 0
        ]

    def is_paused(self, source: str, provider_queue: str) -> bool:
        """Whether nothing may be sent from an address to a provider."""
        return bool(source and self._states) and (
            self._is(SourceStatus.PAUSED, source)
            or self._is(SourceStatus.PAUSED, source, providers.label_of(provider_queue))
        )

    def room(self, source: str, provider_queue: str) -> int:
        """How many more recipients the warm-up of an address allows today."""
        if source not in self._warming:
            return UNLIMITED
        return max(0, self._left.get((source, providers.label_of(provider_queue)), UNLIMITED))

    def note_refusal(self, source: str, provider_queue: str) -> None:
        """A provider queue has refused mail because of the address it came from."""
        self._refused.put((source, provider_queue), self._clock() + REFUSED_SECONDS)

    def note_delivery(self, source: str, provider_queue: str) -> None:
        self._refused.discard((source, provider_queue))

    def is_refused(self, source: str, provider_queue: str) -> bool:
        return (self._refused.get((source, provider_queue)) or 0.0) > self._clock()

    def has_other(self, source: str, provider_queue: str) -> bool:
        """Whether this host may send from another address of the pool that can reach the same hosts."""
        own = next((candidate for candidate in self.configured if candidate.name == source), None)
        return own is not None and any(
            other.is_ipv6 == own.is_ipv6 and not self.is_refused(other.name, provider_queue)
            for other in self.usable(own.pool, provider_queue)
            if other.name != source
        )

    def take(
        self, route: routing.Route, claims: Sequence[queue.Claimed]
    ) -> tuple[Sequence[queue.Claimed], Sequence[queue.Claimed]]:
        """Count claims as sent from the address of a route, as far as its warm-up allows; returns also the others."""
        if route.source not in self._warming:
            return claims, ()
        pair = (route.source, providers.label_of(route.provider_queue))
        if pair not in self._left:
            return claims, ()
        room = max(1, self._left[pair])
        self._left[pair] -= len(claims[:room])
        self._pending.update((claim.key, pair) for claim in claims[:room])
        return claims[:room], claims[room:]

    def _is(self, state: SourceStatus, source: str, provider: str = "") -> bool:
        return state in self._states.get((source, provider), ())

    def _allowance(self, pair: _Pair, counts: Sequence[mail_counts.SourceCount]) -> int:
        source, provider = pair
        caps = self._ctx.settings.warmup.source_recipients_per_day
        state = source_services.warmup_state(
            counts, source=source, provider=provider, since=self._warming[source], now=self._ctx.clock(), caps=caps
        )
        cap = warmup.cap(state, caps)
        return UNLIMITED if cap is None else cap - state.used
