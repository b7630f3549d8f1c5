"""Whether an account may send from a domain and is charged for it; kept in the access cache, so mail needs no query."""

import dataclasses

from postroad import context, errors
from postroad.model.domains import warmup
from postroad.storage.engine import store
from postroad.storage.mail import domains
from postroad.storage.people import accounts


async def sending_domain(ctx: context.Context, account_id: str, name: str) -> domains.Domain:
    """The domain, if the account may send from it; otherwise raises Forbidden."""
    known = await ctx.access_cache.refresh(ctx.clock())
    fact = ("domain", account_id, name)
    domain: domains.Domain | None = known.get(fact)
    if domain is None:
        async with ctx.store.looking_up() as tx:
            domain = await domains.by_name(tx, account_id, name)
            owner = await domains.verified_owner(tx, name)
            # A domain that has completed its warm-up counts as warm, and its mail skips the check.
            is_warm = domain is not None and (
                bool(domain.warm)
                or not ctx.settings.warmup.enabled
                or warmup.cap(await warmup_state(ctx, tx, domain), ctx.settings.warmup.recipients_per_day) is None
            )
        if domain is None:
            raise errors.Forbidden(f"from: {name} is not a domain of this account; add the domain first")
        if owner not in (None, account_id):
            raise errors.Forbidden(f"from: {name} is verified by another account; it cannot be used here")
        known[fact] = domain = dataclasses.replace(domain, warm=int(is_warm))
    if domain.verified_at is None and ctx.settings.domains.require_verified:
        raise errors.Forbidden(f"from: {name} is not verified yet; publish its DKIM record, then check the domain")
    return domain


async def warmup_state(ctx: context.Context, tx: store.Transaction, domain: domains.Domain) -> warmup.State:
    key = (domain.account_id, domain.name)
    stored = (await domains.warmups(tx, [key])).get(key)
    return warmup.at(stored, now=ctx.clock(), caps=ctx.settings.warmup.recipients_per_day)


async def is_charged(ctx: context.Context, account_id: str) -> bool:
    """Whether mail of an account costs credits now."""
    if not ctx.settings.credits.enabled:  # nothing to look up
        return False
    known = await ctx.access_cache.refresh(ctx.clock())
    fact = ("charged", account_id)
    charged: bool | None = known.get(fact)
    if charged is None:
        async with ctx.store.looking_up() as tx:
            account = await accounts.by_id(tx, account_id)
        known[fact] = charged = account is None or not account.unlimited
    return charged
