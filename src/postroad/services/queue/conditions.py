"""What keeps queued mail back: provider queues that are not open, source addresses that may not send, and holds."""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from postroad import config
from postroad.model import providers
from postroad.services import context, sources
from postroad.services.queue import wait_reasons
from postroad.storage import holds as stored_holds
from postroad.storage import provider_overrides, provider_queues, queue, source_states, store

# Workers report at least twice in this time.
ALIVE_MICROSECONDS: Final = 90_000_000


class Conditions(msgspec.Struct, frozen=True):
    """The status of provider queues that are not open, by name, the holds in force, and the states of sources."""

    statuses: Mapping[str, provider_queues.Status]
    holds: stored_holds.Holds
    sources: Sequence[source_states.SourceState] = ()

    def status(self, settings: config.Settings, queue_key: str, provider_queue: str) -> provider_queues.Status | None:
        """What keeps a scheduled queue back, if anything does."""
        status = self.statuses.get(provider_queue)
        if not self.sources or queue.simulation_of(queue_key) is not None:
            return status
        provider = providers.label_of(provider_queue) if provider_queue else ""
        pool = sources.pool_of(settings, queue_key, provider or None)
        stopped = sources.stopped(settings, self.sources, pool=pool, provider=provider)
        if stopped is None:
            return status
        reason = f"no source address of pool {pool} may send now ({stopped.source}: {stopped.reason})"
        until = stopped.until or stopped.set_at
        return provider_queues.Status("", provider_queue, wait_reasons.NO_SOURCE, reason, until, stopped.set_at)


async def read(ctx: context.Context, tx: store.Transaction, *, now: int) -> Conditions:
    """The conditions at present."""
    reported = await provider_queues.heard_since(tx, now - ALIVE_MICROSECONDS)
    changed = provider_overrides.in_force(await provider_overrides.listed(tx), now=now)
    paused = [
        provider_queues.Status(
            "", one.name, wait_reasons.PAUSED_BY_OPERATOR, one.pause_reason, one.pause_until or now, one.set_at
        )
        for one in changed.values()
        if one.paused
    ]
    states = await source_states.listed(tx) if ctx.settings.sources else []
    return Conditions(
        wait_reasons.worst_statuses([*reported, *paused]),
        await stored_holds.in_force(tx),
        source_states.in_force(states, now=now),
    )
