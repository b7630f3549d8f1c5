"""What operators have changed of provider queues at run time: paused, or with other limits than the settings."""

from collections.abc import Iterable, Mapping

import msgspec

from postroad.model import providers
from postroad.storage import store


class Override(msgspec.Struct, frozen=True):
    """A row of `provider_overrides`. A limit that is None is that of the settings. It ends at `until`, if set."""

    name: str
    paused: int
    connections: int | None
    messages_per_second: int | None
    messages_per_connection: int | None
    reason: str
    set_by: str
    set_at: int
    until: int | None = None


Overrides = Mapping[str, Override]


def in_force(found: Iterable[Override], *, now: int) -> Overrides:
    """Those whose time is not over, by name."""
    return {one.name: one for one in found if one.until is None or one.until > now}


def covering(found: Overrides, provider_queue: str) -> Override | None:
    """The change of a provider queue: its own, or that of all queues of `others`."""
    return (found.get(provider_queue) or found.get(providers.label_of(provider_queue))) if found else None


async def listed(tx: store.Transaction) -> list[Override]:
    """All changes, by name."""
    return [Override(*row) for row in await tx.fetch("provider_overrides.listed")]


async def put(tx: store.Transaction, override: Override) -> None:
    """Change a provider queue, instead of an earlier change."""
    await tx.execute("provider_overrides.put", *msgspec.structs.astuple(override))


async def remove(tx: store.Transaction, name: str) -> bool:
    """Use the settings again; False when nothing was changed."""
    return await tx.execute("provider_overrides.remove", name) == 1


async def sweep(tx: store.Transaction, *, before: int) -> int:
    """Delete changes whose time was over then."""
    return await tx.execute("provider_overrides.sweep", before)
