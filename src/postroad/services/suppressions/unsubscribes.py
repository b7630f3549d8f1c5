"""Unsubscribing from the lists of an account: by the links of its mail (mail/unsubscribe_links.py), or by the account.

Every claim of a message with a list looks here, so a change takes effect with the next attempt. A recipient who wants
no mail of the account at all goes on its suppression list.
"""

from typing import Final

from postroad import context, errors
from postroad.mail import unsubscribe_links
from postroad.mail.accept import validation
from postroad.model.events import events
from postroad.model.units import labels
from postroad.services import audit_log, usage_limits
from postroad.services.people import tokens
from postroad.storage.engine import store
from postroad.storage.mail import suppressions
from postroad.storage.mail import unsubscribes as stored
from postroad.storage.people import accounts

BY_RECIPIENT: Final = "unsubscribed from all mail"
# What a row that the recipient may remove again is signed for.
UNDO: Final = "unsubscribe"
# The lists that the pages name.
MAX_LISTS: Final = 100


def by_token(ctx: context.Context, token: str) -> unsubscribe_links.Link:
    link = unsubscribe_links.read(ctx.keys, token)
    if link is None:
        raise errors.NotFound("this unsubscribe link is invalid")
    return link


async def leave(ctx: context.Context, link: unsubscribe_links.Link, source: stored.Source) -> str:
    """Unsubscribe the recipient of a link from its list; returns what undoes that."""
    row = _row(ctx, link, source)
    async with ctx.store.reading() as tx:
        found = await stored.find(tx, [row.key])
    if not found:  # else it is a repetition, which takes no lock
        async with ctx.store.transaction() as tx:
            await _lock(tx, link)
            if await stored.add(tx, [row]):
                await _report(ctx, tx, row)
            found = await stored.find(tx, [row.key])
    ctx.webhook_wakeup.set()
    return _undo(ctx, found[row.key])


async def leave_all(ctx: context.Context, link: unsubscribe_links.Link) -> str:
    """Suppress the address of a link; returns what undoes that, or "" when it was suppressed before."""
    row = _row(ctx, link, stored.Source.PAGE, list_name="")
    wanted = suppressions.Suppression(
        row.account_id, row.email_key, suppressions.Source.ACCOUNT, BY_RECIPIENT, None, row.message_id, row.created_at
    )
    async with ctx.store.transaction() as tx:
        await _lock(tx, link)
        added = await suppressions.add(tx, [wanted])
        if added:
            await _report(ctx, tx, row)
    ctx.webhook_wakeup.set()
    return _undo(ctx, row) if added else ""


async def undo(ctx: context.Context, link: unsubscribe_links.Link, signed: str) -> None:
    """Take back what the recipient of a link did, unless it has changed since."""
    row = tokens.read_value(ctx, signed, stored.Unsubscribe, purpose=UNDO)
    if row is None or (row.account_id, row.email_key) != (link.account_id, link.email_key):
        raise errors.NotFound("this unsubscribe link is invalid")
    place = (row.account_id, row.email_key)
    async with ctx.store.transaction() as tx:
        if row.list_name:
            if (await stored.find(tx, [row.key])).get(row.key) == row:
                await stored.remove(tx, *row.key)
        elif (found := (await suppressions.find(tx, [place])).get(place)) and found.created_at == row.created_at:
            await suppressions.remove(tx, *place)


def _row(
    ctx: context.Context, link: unsubscribe_links.Link, source: stored.Source, *, list_name: str | None = None
) -> stored.Unsubscribe:
    chosen = link.list_name if list_name is None else list_name
    return stored.Unsubscribe(link.account_id, chosen, link.email_key, source, link.message_id, ctx.clock())


async def _lock(tx: store.Transaction, link: unsubscribe_links.Link) -> None:
    if (account := (await accounts.lock(tx, [link.account_id])).get(link.account_id)) is None or account.removed_at:
        raise errors.NotFound("this unsubscribe link is invalid")


async def _report(ctx: context.Context, tx: store.Transaction, row: stored.Unsubscribe) -> None:
    data = events.UnsubscribedData(
        to=row.email_key, list_name=row.list_name, email_id=row.message_id or "", source=row.source
    )
    event = events.AccountEvent(row.account_id, events.EventType.UNSUBSCRIBED, row.created_at, data)
    await ctx.outbox.write_account(tx, [event])


def _undo(ctx: context.Context, row: stored.Unsubscribe) -> str:
    """What undoes it, signed; a recipient cannot undo what others did."""
    is_own = row.source in {stored.Source.ONE_CLICK, stored.Source.PAGE}
    return tokens.write_value(ctx, row, purpose=UNDO) if is_own else ""


# What the account sees, and changes.


async def page(
    ctx: context.Context, account_id: str, *, list_name: str, after: str, limit: int, source: str | None = None
) -> list[stored.Unsubscribe]:
    """Who has left a list, in alphabetical order, after an address."""
    name, after = (text.replace("\0", "") for text in (list_name, after))  # PostgreSQL has none in a text
    async with ctx.store.scanning(account_id) as tx:
        return await stored.of_list(tx, account_id, name, after=after, limit=limit, source=source)


async def every(
    ctx: context.Context, account_id: str, *, after: tuple[str, str], limit: int
) -> list[stored.Unsubscribe]:
    """Who has left any list, by list and address, after one of them."""
    async with ctx.store.scanning(account_id) as tx:
        return await stored.of_account(tx, account_id, *after, limit=limit)


async def lists(ctx: context.Context, account_id: str) -> list[str]:
    """The lists that somebody has left."""
    async with ctx.store.scanning(account_id) as tx:
        return await stored.lists(tx, account_id, limit=MAX_LISTS)


async def find(ctx: context.Context, account_id: str, email: str, list_name: str) -> stored.Unsubscribe:
    """The row of an address, in any spelling, that has left a list."""
    key = (account_id, list_name.replace("\0", ""), labels.parse_mailbox("email", email).key)
    async with ctx.store.reading() as tx:
        found = await stored.find(tx, [key])
    if key not in found:
        raise _not_found()
    return found[key]


async def add(ctx: context.Context, account_id: str, email: str, list_name: str) -> tuple[stored.Unsubscribe, bool]:
    """Take an address off a list; returns whether it was on it."""
    validation.check_tags("list", (list_name,))
    key = labels.parse_mailbox("email", email).key
    row = stored.Unsubscribe(account_id, list_name, key, stored.Source.ACCOUNT, None, ctx.clock())
    await usage_limits.check_suppression_quota(ctx, account_id)
    async with ctx.store.transaction() as tx:
        added = await stored.add(tx, [row])
        if added:
            await audit_log.write(ctx, tx, account_id, "suppression.added", f"{key} ({list_name})")
        found = await stored.find(tx, [row.key])
    return found[row.key], bool(added)


async def remove(ctx: context.Context, account_id: str, email: str, list_name: str) -> stored.Unsubscribe:
    """Let an address get the mail of a list again; returns the row that is gone."""
    row = await find(ctx, account_id, email, list_name)
    async with ctx.store.transaction() as tx:
        if not await stored.remove(tx, *row.key):
            raise _not_found()
        await audit_log.write(ctx, tx, account_id, "suppression.removed", f"{row.email_key} ({list_name})")
    return row


def _not_found() -> errors.NotFound:
    return errors.NotFound("the address has not unsubscribed from this list")
