"""Sender domains: several accounts may register a name, one can verify it.

Names are kept in lower case with A-labels, as the address parser writes them, so that domains compare byte by byte.
Every change first locks the access version's row, so that two accounts cannot verify one name at the same moment.
"""

import dataclasses
from collections.abc import Sequence
from typing import Final

from postroad import context, errors
from postroad.mail.accept import send_limits
from postroad.model.domains import warmup
from postroad.model.events import events
from postroad.model.units import identifiers, labels, times
from postroad.services import audit_log, usage_limits
from postroad.storage.engine import store
from postroad.storage.mail import domains
from postroad.storage.people import accounts, credentials


async def warmup_view(ctx: context.Context, domain: domains.Domain) -> warmup.View | None:
    """Today's use and cap, and tomorrow's expected cap; None where no warm-up applies."""
    if domain.warm or not ctx.settings.warmup.enabled:
        return None
    async with ctx.store.reading() as tx:
        state = await send_limits.warmup_state(ctx, tx, domain)
    return warmup.view(state, ctx.settings.warmup.recipients_per_day)


async def warmup_calendar(ctx: context.Context, domain: domains.Domain) -> list[warmup.Day] | None:
    """The steps of the schedule: done, today's and future; None where no warm-up applies."""
    if domain.warm or not ctx.settings.warmup.enabled:
        return None
    async with ctx.store.reading() as tx:
        state = await send_limits.warmup_state(ctx, tx, domain)
    return warmup.calendar(state, ctx.settings.warmup.recipients_per_day) or None


async def in_warmup(ctx: context.Context, listed: Sequence[domains.Domain]) -> list[tuple[domains.Domain, warmup.View]]:
    """Those of the domains that may send and have a cap today."""
    if not ctx.settings.warmup.enabled:
        return []
    keys = {(each.account_id, each.name): each for each in listed if each.verified_at is not None and not each.warm}
    async with ctx.store.reading() as tx:
        states = await domains.warmups(tx, keys)
    now, caps = ctx.clock(), ctx.settings.warmup.recipients_per_day
    views = ((each, warmup.view(warmup.at(states.get(key), now=now, caps=caps), caps)) for key, each in keys.items())
    return [(each, view) for each, view in views if view.cap is not None]


# How the audit log describes who verified a domain.
VERIFIED_BY: Final = {domains.OPERATOR: "by the operator", domains.DNS: "by its DKIM record in DNS"}


async def add(ctx: context.Context, account_id: str, name: str, *, verified: bool) -> domains.Domain:
    """Register a domain for an account; an operator may verify it at once."""
    normal = labels.parse_domain("name", name)
    now = ctx.clock()
    domain = domains.Domain(
        id=ctx.new_id(identifiers.DOMAIN, now=now),
        account_id=account_id,
        name=normal,
        verified_at=now if verified else None,
        created_at=now,
        verified_by=domains.OPERATOR if verified else None,
    )
    async with ctx.store.transaction() as tx:
        await credentials.bump_access_version(tx)
        await usage_limits.check_quota(ctx, tx, account_id, "domains")
        await _refuse_verified_elsewhere(tx, account_id, normal)
        if not await domains.insert(tx, domain):
            raise errors.Conflict(f"name: {normal} is already registered by this account")
        await audit_log.write(
            ctx, tx, account_id, "domain.added", normal, "verified by the operator" if verified else ""
        )
        if verified:
            await _announce(ctx, tx, domain, by=domains.OPERATOR, now=now)
    ctx.access_cache.invalidate()
    return domain


async def of_account(
    ctx: context.Context, account_id: str, *, after: str = "", limit: int = domains.MAX_ROWS
) -> list[domains.Domain]:
    async with ctx.store.scanning(account_id) as tx:
        return await domains.of_account(tx, account_id, after=after, limit=limit)


async def find(ctx: context.Context, account_id: str, domain_id: str) -> domains.Domain:
    _check_id(domain_id)
    async with ctx.store.reading() as tx:
        return await _existing(tx, account_id, domain_id)


async def by_name(ctx: context.Context, account_id: str, name: str) -> domains.Domain:
    """One domain of an account by its name, in any spelling."""
    normal = labels.parse_domain("name", name)
    async with ctx.store.reading() as tx:
        domain = await domains.by_name(tx, account_id, normal)
    if domain is None:
        raise errors.NotFound(f"{normal} is not registered by this account")
    return domain


async def verified_owner(ctx: context.Context, name: str) -> str | None:
    """The account that has verified a name. For operators: accounts do not learn of each other."""
    async with ctx.store.reading() as tx:
        return await domains.verified_owner(tx, labels.parse_domain("name", name))


async def verify(ctx: context.Context, account_id: str, domain_id: str, *, by: str) -> domains.Domain:
    """Mark a domain as verified by the operator or by DNS; a verified domain stays as it is.

    Verification by the operator replaces that by DNS, which is then no longer needed.
    """
    _check_id(domain_id)
    now = ctx.clock()
    async with ctx.store.transaction() as tx:
        await credentials.bump_access_version(tx)
        domain = await _existing(tx, account_id, domain_id)
        if domain.verified_at is not None and by in {domains.DNS, domain.verified_by}:
            return domain
        await _refuse_verified_elsewhere(tx, account_id, domain.name)
        if domain.verified_at is None:
            await _announce(ctx, tx, domain, by=by, now=now)
        await domains.verify(tx, account_id, domain_id, by=by, now=now)
        await audit_log.write(ctx, tx, account_id, "domain.verified", domain.name, VERIFIED_BY[by])
    ctx.access_cache.invalidate()
    return dataclasses.replace(domain, verified_at=domain.verified_at or now, verified_by=by, failing_since=None)


async def _announce(ctx: context.Context, tx: store.Transaction, domain: domains.Domain, *, by: str, now: int) -> None:
    await accounts.lock(tx, [domain.account_id])
    data = events.DomainData(domain_id=domain.id, domain=domain.name, verified_by=by)
    kind = events.EventType.DOMAIN_VERIFIED
    await ctx.outbox.write_account(tx, [events.AccountEvent(domain.account_id, kind, now, data)])


async def unverify(ctx: context.Context, account_id: str, domain_id: str, *, failing_before: int) -> bool:
    """Revoke a verification whose DNS record has been missing for too long; False when that has changed."""
    _check_id(domain_id)
    async with ctx.store.transaction() as tx:
        await credentials.bump_access_version(tx)
        domain = await domains.by_id(tx, account_id, domain_id)
        is_changed = await domains.unverify(tx, account_id, domain_id, failing_before=failing_before)
        if is_changed and domain is not None:
            await audit_log.write(
                ctx, tx, account_id, "domain.unverified", domain.name, "its DKIM record is gone from DNS"
            )
    ctx.access_cache.invalidate()
    return is_changed


async def set_warm(ctx: context.Context, account_id: str, domain_id: str, *, warm: bool) -> domains.Domain:
    """Exempt a domain from warm-up, or end the exemption: warm-up then continues where it was."""
    _check_id(domain_id)
    async with ctx.store.transaction() as tx:
        await credentials.bump_access_version(tx)
        domain = await _existing(tx, account_id, domain_id)
        await domains.set_warm(tx, account_id, domain_id, warm=warm)
        await audit_log.write(ctx, tx, account_id, "domain.warm" if warm else "domain.not_warm", domain.name)
    ctx.access_cache.invalidate()
    return dataclasses.replace(domain, warm=int(warm))


async def set_link_host(ctx: context.Context, account_id: str, domain_id: str, host: str | None) -> domains.Domain:
    """Set the host of unsubscribe links, which leads here (link_hosts.py); None for that of the installation."""
    async with ctx.store.transaction() as tx:
        await credentials.bump_access_version(tx)
        domain = await _existing(tx, account_id, domain_id)
        await domains.set_link_host(tx, account_id, domain_id, link_host=host)
        await audit_log.write(ctx, tx, account_id, "domain.link_host_changed", domain.name, host or "")
    ctx.access_cache.invalidate()
    return dataclasses.replace(domain, link_host=host)


async def remove(ctx: context.Context, account_id: str, domain_id: str) -> None:
    """Remove a domain and its keys: it can no longer be used to send. Accepted mail is delivered unsigned.

    Today's volume is kept: adding the domain again does not reset it.
    """
    _check_id(domain_id)
    today = times.day_of(ctx.clock())
    async with ctx.store.transaction() as tx:
        await credentials.bump_access_version(tx)
        domain = await _existing(tx, account_id, domain_id)
        await domains.remove(tx, account_id, domain_id)
        await domains.forget_warmups(tx, (account_id, domain.name), before_day=today)
        await domains.remove_dkim_keys(tx, account_id, domain_id)
        await domains.remove_checks(tx, account_id, domain_id)
        await audit_log.write(ctx, tx, account_id, "domain.removed", domain.name)
    ctx.access_cache.invalidate()


async def _existing(tx: store.Transaction, account_id: str, domain_id: str) -> domains.Domain:
    domain = await domains.by_id(tx, account_id, domain_id)
    if domain is None:
        raise _not_found()
    return domain


async def _refuse_verified_elsewhere(tx: store.Transaction, account_id: str, name: str) -> None:
    if await domains.verified_owner(tx, name) not in (None, account_id):
        raise errors.Conflict(f"name: {name} is verified by another account")


def _check_id(domain_id: str) -> None:
    if not identifiers.is_identifier(domain_id, identifiers.DOMAIN):
        raise _not_found()


def _not_found() -> errors.NotFound:
    return errors.NotFound("no such domain in this account")
