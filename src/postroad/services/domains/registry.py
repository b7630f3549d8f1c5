"""Sender domains: registered by many accounts, proven by one.

Names are kept in lower case and A-labels, as the address parser writes them, so that a sender's domain is compared byte
by byte. Every change takes the access version's row first: that keeps two accounts from proving one name at one moment.
"""

import dataclasses
from typing import Final

from postroad import errors
from postroad.model import identifiers, times
from postroad.protocol import address
from postroad.services import audit_log, context
from postroad.storage import access_version, dkim_keys, domain_checks, domains, store, warmups

# What the journal says of whose word it is.
VERIFIED_BY: Final = {domains.OPERATOR: "by the operator's word", domains.DNS: "by its DKIM record in DNS"}


async def add(ctx: context.Context, account_id: str, name: str, *, verified: bool) -> domains.Domain:
    """Register a domain for an account; an operator may vouch for it."""
    normal = _parse(name)
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
        await access_version.bump(tx)
        await _refuse_verified_elsewhere(tx, account_id, normal)
        if not await domains.insert(tx, domain):
            raise errors.Conflict(f"name: {normal} is a domain of this account already")
        await audit_log.write(
            ctx, tx, account_id, "domain.added", normal, VERIFIED_BY[domains.OPERATOR] if verified else ""
        )
    ctx.access_cache.invalidate()
    return domain


async def of_account(
    ctx: context.Context, account_id: str, *, after: str = "", limit: int = domains.MAX_ROWS
) -> list[domains.Domain]:
    """An account's domains, oldest first."""
    async with ctx.store.scanning() as tx:
        return await domains.of_account(tx, account_id, after=after, limit=limit)


async def find(ctx: context.Context, account_id: str, domain_id: str) -> domains.Domain:
    """One domain of an account."""
    _check_id(domain_id)
    async with ctx.store.reading() as tx:
        return await _existing(tx, account_id, domain_id)


async def by_name(ctx: context.Context, account_id: str, name: str) -> domains.Domain:
    """One domain of an account by its name, however it is written."""
    normal = _parse(name)
    async with ctx.store.reading() as tx:
        domain = await domains.by_name(tx, account_id, normal)
    if domain is None:
        raise errors.NotFound(f"the account has no domain {normal}")
    return domain


async def verified_owner(ctx: context.Context, name: str) -> str | None:
    """The account that has proven a name, however it is written. For operators: accounts are not told of each other."""
    async with ctx.store.reading() as tx:
        return await domains.verified_owner(tx, _parse(name))


async def verify(ctx: context.Context, account_id: str, domain_id: str, *, by: str) -> domains.Domain:
    """Mark a domain as proven, by an operator's word or by DNS; one that is proven already stays as it is.

    Only an operator's word stands in for that of DNS, which is then not needed any more.
    """
    _check_id(domain_id)
    now = ctx.clock()
    async with ctx.store.transaction() as tx:
        await access_version.bump(tx)
        domain = await _existing(tx, account_id, domain_id)
        if domain.verified_at is not None and by in {domains.DNS, domain.verified_by}:
            return domain
        await _refuse_verified_elsewhere(tx, account_id, domain.name)
        await domains.verify(tx, account_id, domain_id, by=by, now=now)
        await audit_log.write(ctx, tx, account_id, "domain.verified", domain.name, VERIFIED_BY[by])
    ctx.access_cache.invalidate()
    return dataclasses.replace(domain, verified_at=domain.verified_at or now, verified_by=by, failing_since=None)


async def unverify(ctx: context.Context, account_id: str, domain_id: str, *, failing_before: int) -> bool:
    """Take back what DNS has proven and denies since before that time; False when it is not so any more."""
    _check_id(domain_id)
    async with ctx.store.transaction() as tx:
        await access_version.bump(tx)
        domain = await domains.by_id(tx, account_id, domain_id)
        is_changed = await domains.unverify(tx, account_id, domain_id, failing_before=failing_before)
        if is_changed and domain is not None:
            await audit_log.write(
                ctx, tx, account_id, "domain.unverified", domain.name, "its DKIM record is gone from DNS"
            )
    ctx.access_cache.invalidate()
    return is_changed


async def set_warm(ctx: context.Context, account_id: str, domain_id: str, *, warm: bool) -> domains.Domain:
    """Say that a domain needs no warm-up, or that it does: then it goes on where it was."""
    _check_id(domain_id)
    async with ctx.store.transaction() as tx:
        await access_version.bump(tx)
        domain = await _existing(tx, account_id, domain_id)
        await domains.set_warm(tx, account_id, domain_id, warm=warm)
        await audit_log.write(ctx, tx, account_id, "domain.warm" if warm else "domain.not_warm", domain.name)
    ctx.access_cache.invalidate()
    return dataclasses.replace(domain, warm=int(warm))


async def remove(ctx: context.Context, account_id: str, domain_id: str) -> None:
    """Forget a domain and its keys: nothing can be sent from it any more. Accepted mail is delivered, unsigned.

    What it has sent today stays known: adding it again gives no second day.
    """
    _check_id(domain_id)
    today = times.day_of(ctx.clock())
    async with ctx.store.transaction() as tx:
        await access_version.bump(tx)
        domain = await _existing(tx, account_id, domain_id)
        await domains.remove(tx, account_id, domain_id)
        await warmups.forget(tx, (account_id, domain.name), before_day=today)
        await dkim_keys.remove(tx, account_id, domain_id)
        await domain_checks.remove(tx, account_id, domain_id)
        await audit_log.write(ctx, tx, account_id, "domain.removed", domain.name)
    ctx.access_cache.invalidate()


def _parse(name: str) -> str:
    try:
        return address.parse_domain(name)
    except address.AddressError as problem:
        raise errors.InvalidRequest(f"name: {problem}") from None


async def _existing(tx: store.Transaction, account_id: str, domain_id: str) -> domains.Domain:
    domain = await domains.by_id(tx, account_id, domain_id)
    if domain is None:
        raise _not_found()
    return domain


async def _refuse_verified_elsewhere(tx: store.Transaction, account_id: str, name: str) -> None:
    owner = await domains.verified_owner(tx, name)
    if owner not in (None, account_id):
        raise errors.Conflict(f"name: {name} is proven by another account")


def _check_id(domain_id: str) -> None:
    if not identifiers.is_identifier(domain_id, identifiers.DOMAIN):
        raise _not_found()


def _not_found() -> errors.NotFound:
    return errors.NotFound("there is no such domain in this account")
