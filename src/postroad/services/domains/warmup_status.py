"""The warm-up status of a sender domain for display; the accepting transaction enforces it."""

from postroad.model import warmup
from postroad.services import context
from postroad.storage import domains, store, warmups


async def view(ctx: context.Context, domain: domains.Domain) -> warmup.View | None:
    """Today's use and cap, and tomorrow's expected cap; None where no warm-up applies."""
    if domain.warm or not ctx.settings.warmup.enabled:
        return None
    async with ctx.store.reading() as tx:
        state = await _state(ctx, tx, domain)
    return warmup.view(state, ctx.settings.warmup.recipients_per_day)


async def calendar(ctx: context.Context, domain: domains.Domain) -> list[warmup.Day] | None:
    """The steps of the schedule: done, today's and future; None where no warm-up applies."""
    if domain.warm or not ctx.settings.warmup.enabled:
        return None
    async with ctx.store.reading() as tx:
        state = await _state(ctx, tx, domain)
    return warmup.calendar(state, ctx.settings.warmup.recipients_per_day) or None


async def is_free(ctx: context.Context, tx: store.Transaction, domain: domains.Domain) -> bool:
    """Whether a domain needs no warm-up."""
    if domain.warm or not ctx.settings.warmup.enabled:
        return True
    return warmup.cap(await _state(ctx, tx, domain), ctx.settings.warmup.recipients_per_day) is None


async def _state(ctx: context.Context, tx: store.Transaction, domain: domains.Domain) -> warmup.State:
    key = (domain.account_id, domain.name)
    stored = (await warmups.find(tx, [key])).get(key)
    return warmup.at(stored, now=ctx.clock(), caps=ctx.settings.warmup.recipients_per_day)
