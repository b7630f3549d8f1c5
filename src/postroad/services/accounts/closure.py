"""Close an account, open it again, or remove it with everything that it has.

Nobody logs in to a closed account, and nothing is accepted from it. Mail that was accepted before is delivered, and
its webhooks are sent: it was promised. Whoever wants it gone cancels it first (`postroad queue cancel`). All data of a
closed account is kept, so it can be opened again.

Removal is for closed accounts without queued mail. The account is marked in one transaction and does not exist for
anybody from then on; its data is deleted in small ones, and its row last. A removal that was interrupted is continued
by the next maintenance sweep.
"""

import dataclasses
import functools
from typing import Final

from postroad import errors
from postroad.model import actors
from postroad.services import audit_log, context
from postroad.services.accounts import registry
from postroad.services.auth import operators
from postroad.services.maintenance import throttled_batches
from postroad.storage import (
    access_version,
    account_removal,
    accounts,
    retention,
    store,
    users,
    webhook_deliveries,
    webhooks,
)

# Part of the error that a sender sees: "the account is suspended: it is closed".
REASON: Final = "it is closed"
# Of one sweep, so that other work is not kept waiting: a few million rows. The rest follows with the next one.
MAX_BATCHES: Final = 5_000
# Interrupted removals are rare.
MAX_ACCOUNTS: Final = 100


async def close(ctx: context.Context, account_id: str) -> accounts.Account:
    """Close an account, at once and on every host. One operator who can log in stays."""
    now = ctx.clock()
    async with ctx.store.transaction() as tx:
        account = await registry.lock(tx, account_id)
        if account.closed_at is not None:
            return account
        await _keep_an_operator(ctx, tx, account_id)
        await accounts.close(tx, account_id, reason=REASON, now=now)
        await audit_log.write(ctx, tx, account_id, "account.closed", account.name)
    ctx.access_cache.invalidate()
    return dataclasses.replace(account, status=accounts.SUSPENDED, suspended_reason=REASON, closed_at=now)


async def _keep_an_operator(ctx: context.Context, tx: store.Transaction, account_id: str) -> None:
    # At the command line, the account can be opened again at once.
    if ctx.actor is actors.OPERATOR:
        return
    found = await users.operators(tx)
    if all(one.account_id != account_id for one in found):
        return
    if all(one.account_id == account_id for one in await operators.who_can_log_in(tx)):
        raise errors.Conflict(
            "no operator could log in any more: make a user of another account an operator first, "
            "or use 'postroad account close'"
        )


async def reopen(ctx: context.Context, account_id: str) -> accounts.Account:
    """Open a closed account again; it is active then, whatever it was before it was closed."""
    async with ctx.store.transaction() as tx:
        account = await registry.lock(tx, account_id)
        if account.closed_at is None:
            raise errors.Conflict(f"account {account.name!r} is not closed")
        await accounts.reopen(tx, account_id)
        await audit_log.write(ctx, tx, account_id, "account.reopened", account.name)
    ctx.access_cache.invalidate()
    return dataclasses.replace(account, status=accounts.ACTIVE, suspended_reason=None, closed_at=None)


async def remove(ctx: context.Context, account_id: str) -> accounts.Account:
    """Remove a closed account and delete its data; returns the account as it was."""
    async with ctx.store.transaction() as tx:
        account = await registry.lock(tx, account_id)
        if account.closed_at is None:
            raise errors.Conflict(
                f"account {account.name!r} is not closed; close it first with 'postroad account close'"
            )
        if await account_removal.has_queue(tx, account_id):
            raise errors.Conflict(
                f"account {account.name!r} has queued mail; wait until it is delivered, or cancel it with "
                f"'postroad queue cancel --account {account_id}'"
            )
        await account_removal.mark(tx, account_id, now=ctx.clock())
        await audit_log.write(ctx, tx, audit_log.INSTALLATION, "account.removed", account.name, account_id)
    ctx.access_cache.invalidate()
    while not await _delete_some(ctx, account_id):
        pass  # each call deletes a bounded number of rows, and nobody adds any
    return account


async def continue_removals(ctx: context.Context) -> int:
    """Delete the data of accounts whose removal was interrupted; returns how many are gone."""
    async with ctx.store.reading() as tx:
        marked = await account_removal.marked(tx, limit=MAX_ACCOUNTS)
    return sum([await _delete_some(ctx, account_id) for account_id in marked])


async def _delete_some(ctx: context.Context, account_id: str) -> bool:
    """Delete up to MAX_BATCHES batches of an account; whether nothing is left."""
    # The order keeps the database consistent after every transaction: what belongs to a row goes with it or before it.
    steps = [
        functools.partial(_delete_webhook_log, account_id),
        functools.partial(account_removal.delete_rows, "idempotency_keys", account_id),
        functools.partial(_delete_messages, account_id),
        *(functools.partial(account_removal.delete_rows, table, account_id) for table in account_removal.TABLES),
    ]
    left = MAX_BATCHES
    for step in steps:
        while await throttled_batches.run_batch(ctx, step):
            left -= 1
            if not left:
                return False
    async with ctx.store.transaction() as tx:
        await access_version.bump(tx)
        await account_removal.delete_account(tx, account_id)
    return True


async def _delete_messages(account_id: str, tx: store.Transaction) -> int:
    return await retention.remove_account_messages(tx, account_id)


async def _delete_webhook_log(account_id: str, tx: store.Transaction) -> int:
    for webhook_id in await account_removal.webhooks(tx, account_id):
        removed = await webhook_deliveries.sweep_removed(tx, account_id, webhook_id)
        if removed:
            return removed
        await webhooks.forget(tx, webhook_id)
    return 0
