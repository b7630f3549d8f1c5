"""Accounts: made, found, suspended and resumed. A suspended account reads, but does not send."""

import dataclasses

from postroad import errors
from postroad.model import identifiers, labels
from postroad.services import context
from postroad.storage import access, accounts

# A sentence for the account's people; it is part of the refusal that a sender sees.
REASON_CHARACTERS = 200


async def create(ctx: context.Context, name: str) -> accounts.Account:
    """A new account, active and without credits."""
    labels.check("name", name)
    now = ctx.clock()
    account_id = ctx.new_id(identifiers.ACCOUNT, now=now)
    async with ctx.store.transaction() as tx:
        await accounts.insert(tx, account_id, name=name, now=now)
    return accounts.Account(account_id, name, accounts.ACTIVE, None, available=0, reserved=0, created_at=now)


async def find(ctx: context.Context, account_id: str) -> accounts.Account:
    """One account."""
    if not identifiers.is_identifier(account_id, identifiers.ACCOUNT):
        raise unknown()
    async with ctx.store.reading() as tx:
        account = await accounts.by_id(tx, account_id)
    if account is None:
        raise unknown()
    return account


async def by_name(ctx: context.Context, name: str, *, limit: int) -> list[accounts.Account]:
    """The accounts that people call so; names need not be unique."""
    async with ctx.store.scanning() as tx:
        return await accounts.by_name(tx, name, limit=limit)


async def page(ctx: context.Context, after: str, limit: int) -> list[accounts.Account]:
    """Accounts in order of their making, after an id; the first ones come after an empty text."""
    async with ctx.store.scanning() as tx:
        return await accounts.page(tx, after=after, limit=limit)


async def suspend(ctx: context.Context, account_id: str, reason: str) -> accounts.Account:
    """Stop an account from sending, at once and on every host. Suspended again, it takes the new reason."""
    labels.check("reason", reason, most=REASON_CHARACTERS)
    return await _set_status(ctx, account_id, status=accounts.SUSPENDED, reason=reason)


async def resume(ctx: context.Context, account_id: str) -> accounts.Account:
    """Let an account send again."""
    return await _set_status(ctx, account_id, status=accounts.ACTIVE, reason=None)


def unknown() -> errors.NotFound:
    """The refusal of an id that is no account's."""
    return errors.NotFound("there is no such account")


async def _set_status(ctx: context.Context, account_id: str, *, status: str, reason: str | None) -> accounts.Account:
    if not identifiers.is_identifier(account_id, identifiers.ACCOUNT):
        raise unknown()
    async with ctx.store.transaction() as tx:
        await access.bump(tx)
        account = (await accounts.lock(tx, [account_id])).get(account_id)
        if account is None:
            raise unknown()
        await accounts.set_status(tx, account_id, status=status, reason=reason)
    ctx.memory.forget()
    return dataclasses.replace(account, status=status, suspended_reason=reason)
