"""What the recipients of mail with a list do: leave it, or get no mail of the account at all, and take that back.

A link (mail/unsubscribe_links.py) is their proof. Every claim of a message with a list looks here, so it takes effect
with the next attempt. The account manages the same rows with its suppressions (suppression_list.py).
"""

from typing import Final

from postroad import context, errors
from postroad.mail import unsubscribe_links
from postroad.model.events import events
from postroad.services.people import tokens
from postroad.storage.mail import suppressions
from postroad.storage.people import accounts

BY_RECIPIENT: Final = "unsubscribed from all mail"
# What a row that its recipient may remove again is signed for.
UNDO: Final = "unsubscribe"


def by_token(ctx: context.Context, token: str) -> unsubscribe_links.Link:
    link = unsubscribe_links.read(ctx.keys, token)
    if link is None:
        raise _invalid()
    return link


async def leave(
    ctx: context.Context, link: unsubscribe_links.Link, source: suppressions.ListSource, *, is_all: bool = False
) -> str:
    """Unsubscribe the recipient of a link; returns what undoes that, or ""."""
    row = suppressions.Suppression(
        link.account_id,
        link.email_key,
        # The suppression list has no source of its own for it.
        suppressions.Source.ACCOUNT if is_all else source,
        BY_RECIPIENT if is_all else "",
        None,
        link.message_id,
        ctx.clock(),
        "" if is_all else link.list_name,
    )
    async with ctx.store.reading() as tx:
        # A repetition takes no lock.
        if (found := await suppressions.get(tx, row.account_id, row.email_key, row.list_name)) is not None:
            return _undo(ctx, found)
    async with ctx.store.transaction() as tx:
        account = (await accounts.lock(tx, [link.account_id])).get(link.account_id)
        if account is None or account.removed_at is not None:
            raise _invalid()
        added = await suppressions.add(tx, [row])
        if added:
            data = events.UnsubscribedData(
                to=row.email_key, list_name=row.list_name, email_id=link.message_id, source=source
            )
            event = events.AccountEvent(row.account_id, events.EventType.UNSUBSCRIBED, row.created_at, data)
            await ctx.outbox.write_account(tx, [event])
    ctx.webhook_wakeup.set()
    return _undo(ctx, row) if added else ""


async def left(ctx: context.Context, link: unsubscribe_links.Link) -> tuple[str, str]:
    """What the recipient of a link left, "list" or "all" mail or "", and what undoes that."""
    async with ctx.store.reading() as tx:
        for what, list_name in (("all", ""), ("list", link.list_name)):
            row = await suppressions.get(tx, link.account_id, link.email_key, list_name)
            if row is not None and (undo := _undo(ctx, row)):
                return what, undo
    return "", ""


async def undo(ctx: context.Context, link: unsubscribe_links.Link, signed: str) -> None:
    """Take back what the recipient of a link did, unless it has changed since."""
    row = tokens.read_value(ctx, signed, suppressions.Suppression, purpose=UNDO)
    if row is None or (row.account_id, row.email_key) != (link.account_id, link.email_key):
        raise _invalid()
    async with ctx.store.transaction() as tx:
        if await suppressions.get(tx, row.account_id, row.email_key, row.list_name) == row:
            await suppressions.remove(tx, row.account_id, row.email_key, row.list_name)


def _undo(ctx: context.Context, row: suppressions.Suppression) -> str:
    """What undoes a row; "" if somebody else put the address there."""
    is_theirs = row.source in set(suppressions.ListSource) or row.reason == BY_RECIPIENT
    return tokens.write_value(ctx, row, purpose=UNDO) if is_theirs else ""


def _invalid() -> errors.NotFound:
    return errors.NotFound("this unsubscribe link is invalid")
