"""Where mail goes, as operators see it: provider queues with their limits and why these are in force, and changes.

A change is a row of the store, so it lasts over restarts and applies on every host within a poll of its delivery
engine. Without one, the settings apply.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from postroad import config, context, errors
from postroad.model.delivery import providers
from postroad.model.units import labels
from postroad.protocol.mime import address
from postroad.services import audit_log
from postroad.services.messages import queue_inspection
from postroad.storage.mail import delivery_controls
from postroad.storage.operations import processes

MAX_LIMIT: Final = 10_000
# Provider queues of single hosts that are listed, beside those with names.
MAX_LISTED: Final = 500
LIMITS: Final = ("connections", "messages_per_second", "messages_per_connection")
OPEN: Final = "open"
PAUSED: Final = "paused"
SEVERITY: Final = (OPEN, "slowed", PAUSED, "blocked")


class Destination(msgspec.Struct, frozen=True):
    name: str
    settings: Mapping[str, int]
    override: delivery_controls.Override | None
    reported: Sequence[processes.QueueStatus]

    @property
    def limits(self) -> Mapping[str, int]:
        """The limits in force; adaptive rates may reduce them."""
        return {name: (getattr(self.override, name, None) or value) for name, value in self.settings.items()}

    @property
    def is_paused(self) -> bool:
        return self.override is not None and bool(self.override.paused)

    @property
    def state(self) -> str:
        """The worst that a worker reports, or that an operator has paused it."""
        states = [queue_status.state for queue_status in self.reported if not queue_status.source] + (
            [PAUSED] if self.is_paused else []
        )
        return max(states, key=SEVERITY.index, default=OPEN)


async def listed(ctx: context.Context) -> list[Destination]:
    """The providers with names, the upstreams, and all others that are not simply open."""
    changes, reported = await _read(ctx)
    names = [*providers.PROVIDERS, *(upstream.provider_queue for upstream in ctx.settings.upstreams)]
    names += sorted(({status.provider_queue for status in reported} | changes.keys()) - set(names))[:MAX_LISTED]
    return [_destination(ctx, name, changes, reported) for name in names]


async def find(ctx: context.Context, name: str) -> Destination:
    name = _checked(ctx, name)
    return _destination(ctx, name, *await _read(ctx))


async def _read(ctx: context.Context) -> tuple[delivery_controls.Overrides, Sequence[processes.QueueStatus]]:
    now = ctx.clock()
    async with ctx.store.reading() as tx:
        changes = delivery_controls.overrides_in_force(await delivery_controls.listed_overrides(tx), now=now)
        return changes, await processes.queues_since(tx, now - queue_inspection.ALIVE_MICROSECONDS)


def _destination(
    ctx: context.Context,
    name: str,
    changes: delivery_controls.Overrides,
    reported: Sequence[processes.QueueStatus],
) -> Destination:
    own = [queue_status for queue_status in reported if queue_status.provider_queue == name]
    return Destination(name, of_settings(ctx.settings, name), delivery_controls.overrides_covering(changes, name), own)


def of_settings(settings: config.Settings, name: str) -> Mapping[str, int]:
    upstream = next((candidate for candidate in settings.upstreams if candidate.provider_queue == name), None)
    label = name if name in providers.PROVIDERS else providers.OTHERS
    limits = upstream or getattr(settings.providers, label)
    return {limit: getattr(limits, limit) for limit in LIMITS}


async def pause(ctx: context.Context, name: str, *, reason: str, until: int | None) -> Destination:
    """Send nothing to a provider until it is resumed, or until a time."""
    changes: Mapping[str, int | str | None] = {"paused": 1, "pause_reason": reason, "pause_until": until}
    return await _change(ctx, name, "provider.paused", reason=reason, until=until, changes=changes)


async def resume(ctx: context.Context, name: str) -> Destination:
    """Send to a paused provider again; changed limits stay."""
    found = await find(ctx, name)
    if found.override is None or not found.override.paused or found.override.name != found.name:
        raise errors.Conflict(f"{found.name} is not paused")
    return await _end(ctx, found.name, "provider.resumed", found.override.without_pause())


async def set_limits(
    ctx: context.Context, name: str, limits: Mapping[str, int], *, reason: str, until: int | None
) -> Destination:
    """Replace limits of the settings; those that are not given are those of the settings."""
    name = _checked(ctx, name)
    if not limits:
        raise errors.InvalidRequest(f"connections: give one or more of {', '.join(LIMITS)}")
    changes = {**{limit: limits.get(limit) for limit in LIMITS}, "limits_reason": reason, "limits_until": until}
    return await _change(ctx, name, "provider.changed", reason=reason, until=until, changes=changes)


async def restore(ctx: context.Context, name: str) -> Destination:
    return await _end(ctx, _checked(ctx, name), "provider.restored", None)


async def _end(ctx: context.Context, name: str, action: str, left: delivery_controls.Override | None) -> Destination:
    async with ctx.store.transaction() as tx:
        if left is not None and left.has_limits:
            await delivery_controls.put_override(
                tx, msgspec.structs.replace(left, set_by=_who(ctx), set_at=ctx.clock())
            )
        elif not await delivery_controls.remove_override(tx, name):
            raise errors.NotFound(f"{name}: no change is in force; the settings apply")
        await audit_log.write(ctx, tx, audit_log.INSTALLATION, action, name)
    ctx.mail_wakeup.set()
    return await find(ctx, name)


async def _change(
    ctx: context.Context,
    name: str,
    action: str,
    *,
    reason: str,
    until: int | None,
    changes: Mapping[str, int | str | None],
) -> Destination:
    name = _checked(ctx, name)
    labels.check_label("reason", reason, limit=labels.REASON_CHARACTERS)
    now = ctx.clock()
    if until is not None and until <= now:
        raise errors.InvalidRequest("until: must be in the future")
    async with ctx.store.transaction() as tx:
        await delivery_controls.sweep_overrides(tx, before=now)
        known = delivery_controls.overrides_in_force(await delivery_controls.listed_overrides(tx), now=now)
        before = known.get(name) or delivery_controls.Override(name, 0, None, None, None, "", now)
        changed = msgspec.structs.replace(before, set_by=_who(ctx), set_at=now, **changes)
        await delivery_controls.put_override(tx, changed)
        given = ", ".join(f"{limit} {value}" for limit, value in changes.items() if limit in LIMITS and value)
        detail = f"{given}: {reason}" if given else reason
        await audit_log.write(ctx, tx, audit_log.INSTALLATION, action, name, detail)
    ctx.mail_wakeup.set()
    return await find(ctx, name)


def _who(ctx: context.Context) -> str:
    return ctx.actor.user_id or (ctx.actor.who.key.id if ctx.actor.who and ctx.actor.who.key else "")


def _checked(ctx: context.Context, name: str) -> str:
    """The name of a provider queue: a provider, an upstream of this host's settings, or the name of a host."""
    if name in providers.PROVIDERS or any(upstream.provider_queue == name for upstream in ctx.settings.upstreams):
        return name
    try:
        return address.parse_domain(name)
    except address.AddressError:
        raise errors.NotFound(f"no such provider; use one of {', '.join(providers.PROVIDERS)}, or a host") from None
