"""Credits: added by the operator, listed in the ledger.

Reserving, settling and refunding credits belong to the mail that they pay for: see `acceptance/transaction.py` and
`results/outcomes.py`.
"""

import dataclasses
from typing import Final

from postroad import errors
from postroad.model import cursors, identifiers, labels
from postroad.services import audit_log, context
from postroad.services.accounts import registry as accounts
from postroad.storage import accounts as stored_accounts
from postroad.storage import ledger as stored_ledger

NOTE_CHARACTERS: Final = 200
# JSON numbers are exact up to 2^53; no balance may leave that range.
MAX_CREDITS: Final = 2**53 - 1


async def add(ctx: context.Context, account_id: str, amount: int, note: str | None) -> stored_accounts.Account:
    """Add credits to an account; balance and ledger change together."""
    _refuse_where_off(ctx)
    if note is not None:
        labels.check("note", note, limit=NOTE_CHARACTERS)
    if not identifiers.is_identifier(account_id, identifiers.ACCOUNT):
        raise accounts.not_found()
    now = ctx.clock()
    async with ctx.store.transaction() as tx:
        account = (await stored_accounts.lock(tx, [account_id])).get(account_id)
        if account is None:
            raise accounts.not_found()
        if not 1 <= amount <= MAX_CREDITS - account.available - account.reserved:
            raise errors.InvalidRequest(f"amount: must be at least 1, and the balance at most {MAX_CREDITS}")
        entry = stored_ledger.Entry(
            id=ctx.new_id(identifiers.LEDGER, now=now),
            account_id=account_id,
            kind=stored_ledger.Kind.GRANT,
            available=amount,
            reserved=0,
            note=note,
            created_at=now,
        )
        await stored_ledger.record(tx, [entry])
        await audit_log.write(ctx, tx, account_id, "credits.added", str(amount), note or "")
    return dataclasses.replace(account, available=account.available + amount)


async def is_charged(ctx: context.Context, account_id: str) -> bool:
    """Whether mail of an account costs credits now."""
    if not ctx.settings.credits.enabled:  # nothing to look up
        return False
    known = await ctx.access_cache.refresh(ctx.clock())
    fact = ("charged", account_id)
    charged: bool | None = known.get(fact)
    if charged is None:
        async with ctx.store.looking_up() as tx:
            account = await stored_accounts.by_id(tx, account_id)
        known[fact] = charged = account is None or needs_credits(ctx, account)
    return charged


def needs_credits(ctx: context.Context, account: stored_accounts.Account) -> bool:
    """Whether an account needs credits to send."""
    return ctx.settings.credits.enabled and not account.unlimited


async def set_unlimited(ctx: context.Context, account_id: str, *, unlimited: bool) -> stored_accounts.Account:
    """Give an account unlimited credits, or charge it again. Mail that was accepted before keeps its price."""
    _refuse_where_off(ctx)
    async with ctx.store.transaction() as tx:
        account = await accounts.lock(tx, account_id)
        await stored_accounts.set_unlimited(tx, account_id, unlimited=unlimited)
        if bool(account.unlimited) != unlimited:
            action = "credits.unlimited" if unlimited else "credits.limited"
            await audit_log.write(ctx, tx, account_id, action, account.name)
    ctx.access_cache.invalidate()
    return dataclasses.replace(account, unlimited=int(unlimited))


def _refuse_where_off(ctx: context.Context) -> None:
    if not ctx.settings.credits.enabled:
        raise errors.Conflict(
            "credits are off (credits.enabled in the settings): mail costs nothing; nothing was changed"
        )


async def ledger(ctx: context.Context, account_id: str, before: str | None, limit: int) -> list[stored_ledger.Entry]:
    """A page of ledger entries, newest first, older than `before`; None for the newest."""
    place = cursors.end(identifiers.LEDGER)
    if before is not None:
        place = cursors.check("before", before, identifiers.LEDGER)
    async with ctx.store.scanning(account_id) as tx:
        return await stored_ledger.page(tx, account_id, before=place, limit=limit)
