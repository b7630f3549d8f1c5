"""The suppression list of an account: addresses that get no mail.

Bounces and complaints add addresses (`results/`). Users add and remove them as well. Every claim checks the list, so a
change takes effect with the next attempt.
"""

import contextlib
import functools
from collections.abc import Sequence
from typing import Final

from postroad import context, errors
from postroad.model.mail import limits
from postroad.model.units import labels
from postroad.protocol.mime import address
from postroad.services import audit_log, throttled_batches, usage_limits
from postroad.storage.engine import store
from postroad.storage.mail import suppressions

# A sentence; senders read it in the recipient's response.
# Of what a user or a program of the account adds without a reason.
BY_ACCOUNT: Final = "added by the account"
# Of what an operator adds at the command line.
BY_OPERATOR: Final = "added by the operator"


async def page(
    ctx: context.Context, account_id: str, *, after: str, limit: int, source: str | None = None, list_name: str = ""
) -> list[suppressions.Suppression]:
    """A page of the list in alphabetical order, after an address; the first page is after an empty text.

    With the name of a list: of those who have left it.
    """
    after, list_name = after.replace("\0", ""), list_name.replace("\0", "")  # PostgreSQL has none in a text
    async with ctx.store.scanning(account_id) as tx:
        if list_name:
            return await suppressions.of_list(tx, account_id, list_name, after=after, limit=limit, source=source)
        return await suppressions.of_account(tx, account_id, after=after, limit=limit, source=source)


async def count(ctx: context.Context, account_id: str) -> int:
    async with ctx.store.reading() as tx:
        return await suppressions.count(tx, account_id)


async def page_of_lists(
    ctx: context.Context, account_id: str, *, after: tuple[str, str], limit: int
) -> list[suppressions.Suppression]:
    """Who has left any list, by list and address, after one of them."""
    async with ctx.store.scanning(account_id) as tx:
        return await suppressions.of_lists(tx, account_id, *after, limit=limit)


async def lists(ctx: context.Context, account_id: str) -> list[str]:
    """The lists that somebody has left."""
    async with ctx.store.scanning(account_id) as tx:
        return await suppressions.lists(tx, account_id, limit=suppressions.MAX_LISTS)


async def find(ctx: context.Context, account_id: str, email: str, *, list_name: str = "") -> suppressions.Suppression:
    """One address of the list, in any spelling."""
    async with ctx.store.reading() as tx:
        found = await suppressions.get(tx, account_id, _known_key(email), list_name.replace("\0", ""))
    if found is None:
        raise _not_found()
    return found


async def listed(ctx: context.Context, account_id: str, emails: Sequence[str]) -> set[str]:
    """Which of these addresses, as they are written, are on the list."""
    # Thousands take some tenths of a second.
    keys = await ctx.threads.run(account_id, lambda: _keys(account_id, emails))
    async with ctx.store.scanning(account_id) as tx:
        found = await suppressions.find(tx, sorted(set(keys.values())))
    return {email for email, place in keys.items() if place in found}


async def add(
    ctx: context.Context,
    account_id: str,
    email: str,
    *,
    reason: str = BY_ACCOUNT,
    source: suppressions.Source = suppressions.Source.ACCOUNT,
    list_name: str = "",
) -> tuple[suppressions.Suppression, bool]:
    """Add an address; returns whether it is new. An address on the list keeps its first reason.

    One that has left a list has none.
    """
    ((row, is_new),) = await add_many(ctx, account_id, [email], reason=reason, source=source, list_name=list_name)
    return row, is_new


async def add_many(
    ctx: context.Context,
    account_id: str,
    emails: Sequence[str],
    *,
    reason: str = BY_ACCOUNT,
    source: suppressions.Source = suppressions.Source.ACCOUNT,
    list_name: str = "",
) -> list[tuple[suppressions.Suppression, bool]]:
    """The same for the addresses of one request, together: in one transaction, with one look at the quota."""
    labels.check_label("reason", reason, limit=labels.REASON_CHARACTERS)
    if list_name:
        labels.check_label("list", list_name, limit=limits.LIST_CHARACTERS)
    keys = [labels.parse_mailbox("email", email).key for email in emails]
    wanted = {
        key: suppressions.Suppression(account_id, key, source, reason, None, None, ctx.clock(), list_name)
        for key in keys
    }
    await usage_limits.check_suppression_quota(ctx, account_id)
    async with ctx.store.transaction() as tx:
        added = {key for _, key in await suppressions.add(tx, wanted.values())}
        for key in sorted(added):
            await audit_log.write(ctx, tx, account_id, "suppression.added", _subject(key, list_name))
        found = {key: await suppressions.get(tx, account_id, key, list_name) or row for key, row in wanted.items()}
    return [(found[key], key in added) for key in keys]


async def remove(ctx: context.Context, account_id: str, email: str, *, list_name: str = "") -> str:
    """Remove an address, whatever put it on the list; returns it as stored."""
    (removed,) = await remove_many(ctx, account_id, [email], list_name=list_name.replace("\0", ""))
    if removed is None:
        raise errors.NotFound("the address has not left this list") if list_name else _not_found()
    return removed


async def restore(ctx: context.Context, row: suppressions.Suppression) -> bool:
    """Put back what was removed, as it was; an address that is on the list again is not changed."""
    await usage_limits.check_suppression_quota(ctx, row.account_id)
    async with ctx.store.transaction() as tx:
        is_new = bool(await suppressions.add(tx, [row]))
        if is_new:
            await audit_log.write(ctx, tx, row.account_id, "suppression.added", _subject(row.email_key, row.list_name))
    return is_new


async def remove_many(
    ctx: context.Context, account_id: str, emails: Sequence[str], *, list_name: str = ""
) -> list[str | None]:
    """The same for the addresses of one request, in one transaction; None for those that are not on the list."""
    keys = _keys(account_id, emails)
    removed: set[str] = set()
    async with ctx.store.transaction() as tx:
        for _, key in sorted(set(keys.values())):
            if await suppressions.remove(tx, account_id, key, list_name):
                await audit_log.write(ctx, tx, account_id, "suppression.removed", _subject(key, list_name))
                removed.add(key)
    return [key if (key := keys.get(email, ("", ""))[1]) in removed else None for email in emails]


def _subject(email_key: str, list_name: str) -> str:
    return f"{email_key} ({list_name})" if list_name else email_key


def _keys(account_id: str, emails: Sequence[str]) -> dict[str, suppressions.SuppressionKey]:
    keys = {}
    for email in emails:
        with contextlib.suppress(errors.NotFound):
            keys[email] = (account_id, _known_key(email))
    return keys


def _known_key(email: str) -> str:
    """The lookup key; what is not an address is on no list."""
    try:
        return address.parse(email).key
    except address.AddressError:
        raise _not_found() from None


def _not_found() -> errors.NotFound:
    return errors.NotFound("the address is not on the suppression list of this account")


# Adds many addresses to the suppression list of an account, in small transactions.
#
# After a failure, the same addresses can be added again: those on the list are not changed.

# For one transaction, which all writers wait for.
BATCH_ROWS: Final = 500


async def add_in_batches(
    ctx: context.Context, rows: Sequence[suppressions.Suppression], *, audit_subject: str | None
) -> int:
    """How many are new. The audit log entry, if there is one, is written with the first: the import has begun."""
    added = 0
    for first in range(0, len(rows), BATCH_ROWS):
        batch = rows[first : first + BATCH_ROWS]
        subject = audit_subject if first == 0 else None
        work = functools.partial(_store_batch, ctx, batch=batch, audit_subject=subject)
        added += len(await throttled_batches.run_batch(ctx, work))
    return added


async def _store_batch(
    ctx: context.Context,
    tx: store.Transaction,
    *,
    batch: Sequence[suppressions.Suppression],
    audit_subject: str | None,
) -> Sequence[suppressions.SuppressionKey]:
    if audit_subject is not None:
        await audit_log.write(ctx, tx, batch[0].account_id, "suppression.imported", audit_subject)
    return await suppressions.add(tx, batch)
