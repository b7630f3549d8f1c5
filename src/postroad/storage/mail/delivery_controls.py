"""What operators decide about delivery at run time: held mail, limits of provider queues, source addresses."""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Final

import msgspec

from postroad.model.delivery import providers
from postroad.storage.engine import queries, store
from postroad.storage.mail import queue

# What the operator holds back: all mail, an account, a recipient domain, or a domain of an account.
#
# Held recipients stay queued and are not claimed. A released hold is kept for a while: what it held does not expire
# before it had a new retry period.

# Stands for every account, or every domain.
HOLD_ALL: Final = ""


class Hold(msgspec.Struct, frozen=True):
    """A row of `holds`. Recipients queued before `in_doubt_before` may have been delivered already."""

    account_id: str
    domain: str
    reason: str
    held_at: int
    released_at: int | None = None
    in_doubt_before: int | None = None


class HeldRecipient(msgspec.Struct, frozen=True):
    """A queued recipient that a hold covers."""

    account_id: str
    message_id: str
    recipient_id: str
    email: str
    queued_at: int


Holds = Mapping[tuple[str, str], Hold]


def hold_by_key(found: Iterable[Hold], *, in_force: bool) -> Holds:
    """The holds in force, or the released ones, for `covering`."""
    return {(hold.account_id, hold.domain): hold for hold in found if (hold.released_at is None) == in_force}


def holds_covering(found: Holds, queue_key: str) -> Hold | None:
    if not found:
        return None
    domain, account_id, *_ = queue.parts_of(queue_key)
    keys = ((HOLD_ALL, HOLD_ALL), (account_id, HOLD_ALL), (HOLD_ALL, domain), (account_id, domain))
    return next((found[key] for key in keys if key in found), None)


@queries.rows("holds.listed", Hold)
async def listed_holds(tx: store.Transaction) -> list[Hold]: ...


async def holds_in_force(tx: store.Transaction) -> Holds:
    return hold_by_key(await listed_holds(tx), in_force=True)


async def put_hold(tx: store.Transaction, hold: Hold) -> bool:
    """Hold; False when it was held already, which stays as it is unless the new one has `in_doubt_before`."""
    return await tx.execute("holds.put", *msgspec.structs.astuple(hold)) == 1


async def release_hold(tx: store.Transaction, hold: Hold, *, now: int) -> bool:
    """Release; False when it was not held."""
    return await tx.execute("holds.release", hold.account_id, hold.domain, now) == 1


@queries.changes("holds.sweep")
async def sweep_holds(tx: store.Transaction, *, released_before: int) -> int: ...


async def held_counts(tx: store.Transaction, hold: Hold, *, queued_before: int) -> list[tuple[str, int]]:
    """How many recipients a hold covers in each scheduled queue, most first."""
    rows = await tx.fetch("holds.counts", hold.account_id, hold.domain, queued_before)
    return [(queue_key, number) for queue_key, number in rows]


async def held_recipients(
    tx: store.Transaction, hold: Hold, *, queued_before: int, after: queue.Key, limit: int
) -> list[HeldRecipient]:
    """The recipients that a hold covers, in order of their keys."""
    rows = await tx.fetch("holds.recipients", hold.account_id, hold.domain, queued_before, *after, limit)
    return [HeldRecipient(*row) for row in rows]


async def newest_held_at(tx: store.Transaction) -> int | None:
    """When the newest message was accepted: how recent a restored database is. Reads all messages."""
    row = await tx.fetch_one("holds.newest_message_at")
    return row[0] if row else None


class Override(msgspec.Struct, frozen=True):
    """A row of `provider_overrides`. A limit that is None is that of the settings. An end that is None is never."""

    name: str
    paused: int
    connections: int | None
    messages_per_second: int | None
    messages_per_connection: int | None
    set_by: str
    set_at: int
    pause_reason: str = ""
    pause_until: int | None = None
    limits_reason: str = ""
    limits_until: int | None = None

    @property
    def has_limits(self) -> bool:
        return any((self.connections, self.messages_per_second, self.messages_per_connection))

    def at(self, now: int) -> "Override | None":
        """What is in force at a time; None if nothing is."""
        found = self
        if found.paused and _is_over(found.pause_until, now):
            found = found.without_pause()
        if found.has_limits and _is_over(found.limits_until, now):
            found = found.without_limits()
        return found if found.paused or found.has_limits else None

    def without_pause(self) -> "Override":
        return msgspec.structs.replace(self, paused=0, pause_reason="", pause_until=None)

    def without_limits(self) -> "Override":
        return msgspec.structs.replace(
            self,
            connections=None,
            messages_per_second=None,
            messages_per_connection=None,
            limits_reason="",
            limits_until=None,
        )


Overrides = Mapping[str, Override]


def _is_over(until: int | None, now: int) -> bool:
    return until is not None and until <= now


def overrides_in_force(found: Iterable[Override], *, now: int) -> Overrides:
    """What of them is in force, by name."""
    return {current.name: current for each in found if (current := each.at(now)) is not None}


def overrides_covering(found: Overrides, provider_queue: str) -> Override | None:
    """The change of a provider queue: its own, or that of all queues of `others`."""
    return (found.get(provider_queue) or found.get(providers.label_of(provider_queue))) if found else None


@queries.rows("provider_overrides.listed", Override)
async def listed_overrides(tx: store.Transaction) -> list[Override]: ...


async def put_override(tx: store.Transaction, override: Override) -> None:
    """Change a provider queue, instead of an earlier change."""
    ends = [override.pause_until] if override.paused else []
    ends += [override.limits_until] if override.has_limits else []
    known = [end for end in ends if end is not None]
    last = max(known) if len(known) == len(ends) else None
    await tx.execute("provider_overrides.put", *msgspec.structs.astuple(override), last)


# Use the settings again; False when nothing was changed.
@queries.changed("provider_overrides.remove")
async def remove_override(tx: store.Transaction, name: str) -> bool: ...
@queries.changes("provider_overrides.sweep")
async def sweep_overrides(tx: store.Transaction, *, before: int) -> int: ...


class SourceStatus(StrEnum):
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


def source_states_in_force(found: Iterable[SourceState], *, now: int) -> Sequence[SourceState]:
    """Those whose time is not over."""
    return [source_state for source_state in found if source_state.until is None or source_state.until > now]


@queries.rows("source_states.listed", SourceState)
async def listed_source_states(tx: store.Transaction) -> list[SourceState]: ...


async def put_source_state(tx: store.Transaction, state: SourceState) -> None:
    """Set a state, instead of the same one from before."""
    await tx.execute("source_states.put", *msgspec.structs.astuple(state))


async def remove_source_state(tx: store.Transaction, source: str, provider: str, states: Iterable[SourceStatus]) -> int:
    """End states; returns how many there were."""
    return sum([await tx.execute("source_states.remove", source, provider, state.value) for state in states])


@queries.changes("source_states.sweep")
async def sweep_source_states(tx: store.Transaction, *, before: int) -> int: ...
