"""What operators have changed of provider queues at run time: paused, or with other limits than the settings.

A pause and changed limits are two changes of one row: each has its own reason and its own end.
"""

from collections.abc import Iterable, Mapping

import msgspec

from postroad.model import providers
from postroad.storage import store


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
        """Whether a limit is changed."""
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
        """The changed limits alone."""
        return msgspec.structs.replace(self, paused=0, pause_reason="", pause_until=None)

    def without_limits(self) -> "Override":
        """The pause alone."""
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


def in_force(found: Iterable[Override], *, now: int) -> Overrides:
    """What of them is in force, by name."""
    return {one.name: one for each in found if (one := each.at(now)) is not None}


def covering(found: Overrides, provider_queue: str) -> Override | None:
    """The change of a provider queue: its own, or that of all queues of `others`."""
    return (found.get(provider_queue) or found.get(providers.label_of(provider_queue))) if found else None


async def listed(tx: store.Transaction) -> list[Override]:
    """All changes, by name."""
    return [Override(*row) for row in await tx.fetch("provider_overrides.listed")]


async def put(tx: store.Transaction, override: Override) -> None:
    """Change a provider queue, instead of an earlier change."""
    ends = [override.pause_until] if override.paused else []
    ends += [override.limits_until] if override.has_limits else []
    known = [end for end in ends if end is not None]
    last = max(known) if len(known) == len(ends) else None
    reason = override.pause_reason if override.paused else override.limits_reason
    await tx.execute("provider_overrides.put", *msgspec.structs.astuple(override), reason, last)


async def remove(tx: store.Transaction, name: str) -> bool:
    """Use the settings again; False when nothing was changed."""
    return await tx.execute("provider_overrides.remove", name) == 1


async def sweep(tx: store.Transaction, *, before: int) -> int:
    """Delete changes whose time was over then."""
    return await tx.execute("provider_overrides.sweep", before)
