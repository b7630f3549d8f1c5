"""What holds for source addresses at run time, on all hosts: paused, draining or warming."""

from collections.abc import Iterable, Sequence
from enum import StrEnum

import msgspec

from postroad.storage import store


class State(StrEnum):
    """What may hold for a source address, also together."""

    PAUSED = "paused"  # nothing is sent
    DRAINING = "draining"  # what was claimed is sent, and nothing more is claimed
    WARMING = "warming"  # no more is sent to a provider in a day than the schedule has


class SourceState(msgspec.Struct, frozen=True):
    """A row of `source_states`. An empty provider stands for all of them. It ends at `until`, if set.

    `set_by` is empty if the service itself has set it.
    """

    source: str
    provider: str
    state: str
    reason: str
    set_by: str
    set_at: int
    until: int | None = None


def in_force(found: Iterable[SourceState], *, now: int) -> Sequence[SourceState]:
    """Those whose time is not over."""
    return [one for one in found if one.until is None or one.until > now]


async def listed(tx: store.Transaction) -> list[SourceState]:
    """All of them, by source address."""
    return [SourceState(*row) for row in await tx.fetch("source_states.listed")]


async def put(tx: store.Transaction, state: SourceState) -> None:
    """Set a state, instead of the same one from before."""
    await tx.execute("source_states.put", *msgspec.structs.astuple(state))


async def remove(tx: store.Transaction, source: str, provider: str, states: Iterable[State]) -> int:
    """End states; returns how many there were."""
    return sum([await tx.execute("source_states.remove", source, provider, state.value) for state in states])


async def sweep(tx: store.Transaction, *, before: int) -> int:
    """Delete those whose time was over then."""
    return await tx.execute("source_states.sweep", before)
