"""Pauses of source addresses that others block, with a notice to the operators, and for a limited time.

A provider blocks an address by its replies: the address is paused for that provider. A blocklist that names an address
concerns all mail, so the address is paused as a whole, unless it is the last one of its pool that may send: a list,
which may be wrong, must not stop all mail. A pause is repeated as long as the cause lasts.
"""

import dataclasses
from collections.abc import Mapping
from typing import Final

from postroad.model import actors, labels, providers, times
from postroad.services import context, sources
from postroad.services.notices import kinds, outbox
from postroad.services.queue import wait_reasons
from postroad.storage import source_states, store
from postroad.storage.source_states import State

# Then the provider is asked again, by sending: most blocks that end by themselves do so within hours.
BLOCKED: Final = 2 * times.HOUR
# Longer than the interval of the checks, so that the pause goes on while the address is listed.
LISTED: Final = 3 * times.HOUR


async def pause_blocked(ctx: context.Context, source: str, provider: str, reply: str) -> None:
    """Pause an address for a provider that refuses it."""
    ctx = dataclasses.replace(ctx, actor=actors.SERVICE)
    now = ctx.clock()
    name, said = providers.NAMES[provider], wait_reasons.shortened(reply)
    reason = f"{name} blocks it: {said}"[: labels.REASON_CHARACTERS]
    row = source_states.SourceState(source, provider, State.PAUSED, reason, "", now, now + BLOCKED)
    async with ctx.store.transaction() as tx:
        await sources.put(ctx, tx, row)
        await _tell(
            ctx, tx, row, {"provider": name, "blocklist": "", "reply": said, "until": times.to_wire(now + BLOCKED)}
        )
    ctx.mail_wakeup.set()


async def pause_listed(ctx: context.Context, listed: Mapping[str, str]) -> None:
    """Pause the source addresses that blocklists name, by address; those that are paused stay so."""
    ctx = dataclasses.replace(ctx, actor=actors.SERVICE)
    now = ctx.clock()
    for source in ctx.settings.sources:
        blocklist = listed.get(source.address)
        if blocklist is None:
            continue
        async with ctx.store.transaction() as tx:
            states = source_states.in_force(await source_states.listed(tx), now=now)
            idle = {one.source for one in states if not one.provider and one.state != State.WARMING}
            by_service = {
                one.source for one in states if not one.provider and one.state == State.PAUSED and not one.set_by
            }
            others = [one.name for one in ctx.settings.sources if one.pool == source.pool and one.name != source.name]
            row = source_states.SourceState(
                source.name, "", State.PAUSED, f"listed by {blocklist}", "", now, now + LISTED
            )
            if source.name in idle - by_service:
                continue  # by an operator, who knows why and how long
            is_paused = source.name in by_service or bool(set(others) - idle)
            if source.name in by_service:
                await source_states.put(tx, row)
            elif is_paused:
                await sources.put(ctx, tx, row)
            until = times.to_wire(now + LISTED) if is_paused else ""
            await _tell(ctx, tx, row, {"blocklist": blocklist, "until": until})
        ctx.mail_wakeup.set()


async def _tell(
    ctx: context.Context, tx: store.Transaction, row: source_states.SourceState, values: Mapping[str, str]
) -> None:
    """Tell the operators; each provider and each blocklist is a subject of its own."""
    subject = f"{row.source} {values['blocklist'] or values['provider']}"
    told = outbox.NewNotice(kind=kinds.ADDRESS_BLOCKED, subject=subject, values={"source": row.source, **values})
    await outbox.write(tx, [told], now=ctx.clock(), entropy=ctx.entropy)
