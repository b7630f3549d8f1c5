"""Mail that an account has received: the list, one mail as its event has it, its content and files, its removal."""

import functools
from typing import Final

from postroad import context, errors
from postroad.model.events import events
from postroad.model.units import identifiers
from postroad.services import audit_log
from postroad.services.inbound import attachment_links, event_data
from postroad.services.messages import previews, received_mail
from postroad.storage.mail import received as stored

RAW_TYPE: Final = "message/rfc822"
# As long as a subject in an event.
SEARCH_CHARACTERS: Final = 200
# More answers to one message are a mailing list.
MAX_ANSWERS: Final = 20


async def page(
    ctx: context.Context,
    account_id: str,
    *,
    limit: int,
    cursor: str | None = None,
    route_id: str | None = None,
    search: str = "",
) -> identifiers.Page[stored.Received]:
    """A page of the mail of an account, newest first; `search` is a part of the sender or the subject."""
    before = identifiers.before(cursor, identifiers.RECEIVED)
    async with ctx.store.scanning(account_id) as tx:
        found = await stored.of_account(
            tx, account_id, before=before, limit=limit + 1, route_id=route_id, pattern=_pattern(search)
        )
    return identifiers.page(found, limit=limit)


def _pattern(search: str) -> str | None:
    """A pattern of LIKE for texts that contain another one, in lower case."""
    # PostgreSQL cannot compare with NUL, and no text has one.
    text = search.strip().lower().replace("\0", "")[:SEARCH_CHARACTERS]
    for special in "\\%_":
        text = text.replace(special, f"\\{special}")
    return f"%{text}%" if text else None


async def find(ctx: context.Context, account_id: str, received_id: str) -> stored.Received:
    async with ctx.store.reading() as tx:
        found = await stored.by_id(tx, account_id, received_id) if _is_id(received_id) else None
    if found is None:
        raise errors.NotFound("no such received message in this account")
    return found


async def raw(ctx: context.Context, account_id: str, received_id: str) -> bytes:
    """The mail as it came."""
    async with ctx.store.scanning(account_id) as tx:
        body = await stored.body(tx, account_id, received_id) if _is_id(received_id) else None
    if body is None:
        raise errors.NotFound("no such received message in this account, or its content is no longer retained")
    return body


async def view(ctx: context.Context, account_id: str, received_id: str) -> events.ReceivedData:
    """A mail as its event has it, with links that begin to expire now."""
    row = await find(ctx, account_id, received_id)
    content = await raw(ctx, account_id, received_id)
    read = functools.partial(received_mail.read, content, sender=row.envelope_sender, recipients=(row.recipient,))
    mail = await ctx.threads.run(account_id, read)
    async with ctx.store.reading() as tx:
        route = await stored.route(tx, account_id, row.route_id)
    return event_data.make(ctx, row, mail, route=route.match_key if route else "", now=ctx.clock())


async def remove(ctx: context.Context, account_id: str, received_id: str) -> None:
    async with ctx.store.transaction() as tx:
        if not (_is_id(received_id) and await stored.remove(tx, account_id, received_id)):
            raise errors.NotFound("no such received message in this account")
        await audit_log.write(ctx, tx, account_id, "received_message.removed", received_id)


async def answers(ctx: context.Context, account_id: str, message_id: str) -> list[stored.Received]:
    """What came back to a message of the account, oldest first."""
    async with ctx.store.reading() as tx:
        return await stored.of_email(tx, account_id, message_id, limit=MAX_ANSWERS)


async def begin_raw(ctx: context.Context, account_id: str, received_id: str) -> previews.StartedDownload:
    """Download a mail as it came."""

    async def read() -> previews.Download:
        return previews.Download(f"{received_id}.eml", RAW_TYPE, await raw(ctx, account_id, received_id))

    return await previews.begin_download(ctx, account_id, read)


async def begin_file(ctx: context.Context, token: str) -> previews.StartedDownload:
    """Download the file of a link."""
    link = attachment_links.read(ctx, token)
    if link is None:
        raise errors.NotFound("this link is not valid, or has expired; get the received message again for a new one")
    if link.index == attachment_links.WHOLE:
        return await begin_raw(ctx, link.account_id, link.received_id)

    async def read() -> previews.Download:
        content = await raw(ctx, link.account_id, link.received_id)
        return await ctx.threads.run(link.account_id, lambda: previews.attachment_of(content, link.index))

    return await previews.begin_download(ctx, link.account_id, read)


def _is_id(text: str) -> bool:
    return identifiers.is_identifier(text, identifiers.RECEIVED)
