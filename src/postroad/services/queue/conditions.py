"""What keeps queued mail back: provider queues that are not open, and holds of the operator."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from postroad.services.queue import wait_reasons
from postroad.storage import holds, provider_overrides, provider_queues, store

# Workers report at least twice in this time.
ALIVE_MICROSECONDS: Final = 90_000_000


@dataclass(frozen=True, slots=True)
class Conditions:
    """The status of provider queues that are not open, by name, and the holds in force."""

    statuses: Mapping[str, provider_queues.Status]
    holds: holds.Holds


async def read(tx: store.Transaction, *, now: int) -> Conditions:
    """The conditions at present."""
    reported = await provider_queues.heard_since(tx, now - ALIVE_MICROSECONDS)
    changed = provider_overrides.in_force(await provider_overrides.listed(tx), now=now)
    paused = [
        provider_queues.Status("", one.name, wait_reasons.PAUSED_BY_OPERATOR, one.reason, one.until or now, one.set_at)
        for one in changed.values()
        if one.paused
    ]
    return Conditions(wait_reasons.worst_statuses([*reported, *paused]), await holds.in_force(tx))
