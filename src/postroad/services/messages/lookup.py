"""Messages of an account: details, raw content, list and search.

A page is found by examining at most `MAX_EXAMINED` entries of the most selective index, whatever the filters. A page
can therefore have few messages, or none, and still have a cursor to continue from.
"""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from postroad import errors
from postroad.model import caller, cursors, identifiers, labels, limits, mail, receipt, search_query
from postroad.protocol import address
from postroad.services import context
from postroad.storage import async_bounces as stored_async_bounces
from postroad.storage import attempts, messages, recipients, store

# At worst about 60 ms of work on SQLite and 110 ms on PostgreSQL: when all are far apart and none matches.
MAX_EXAMINED: Final = 10_000
_RECEIPT: Final = msgspec.json.Decoder(receipt.Receipt)


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """Filters of a list; None does not filter. Times are microseconds: from `after` on, and before `before`.

    A list has live or test messages, never both; a message that is named is found in either mode.
    """

    status: mail.MessageStatus | None = None
    source: mail.Source | None = None
    sender: str | None = None
    recipient: str | None = None
    tag: str | None = None
    metadata: str | None = None
    after: int | None = None
    before: int | None = None
    message_id: str | None = None
    mode: mail.Mode = mail.Mode.LIVE
    words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Page:
    """A page of a list, newest first; `next_cursor` is None at the end."""

    messages: list[messages.Message]
    next_cursor: str | None
    # When the oldest examined message was accepted; None when no bound was met.
    searched_back_to: int | None


@dataclass(frozen=True, slots=True)
class SearchPage(Page):
    """A page of search results, and the address of each message's first recipient by message id."""

    query: search_query.Query
    first_recipients: dict[str, str]


Found = tuple[messages.Message, list[recipients.Recipient]]


@dataclass(frozen=True, slots=True)
class Details:
    """A message with its recipients, receipt, attempts, and reports that arrived later."""

    message: messages.Message
    recipients: list[recipients.Recipient]
    receipt: receipt.Receipt
    attempts: list[attempts.Attempt]
    async_bounces: list[stored_async_bounces.AsyncBounce]


async def find(ctx: context.Context, account_id: str, message_id: str) -> Found:
    """One message of an account and its recipients; a message of another account does not exist."""
    async with ctx.store.reading() as tx:
        return await find_in(tx, account_id, message_id)


async def find_in(tx: store.Transaction, account_id: str, message_id: str) -> Found:
    """The same within a transaction."""
    _check_id(message_id)
    message = await messages.by_id(tx, account_id, message_id)
    if message is None:
        raise _not_found()
    return message, await recipients.of_message(tx, account_id, message_id)


async def check_mode(ctx: context.Context, who: caller.Caller, message_id: str) -> None:
    """A test key sees test messages only; to all others, both exist."""
    if who.is_test and not (await find(ctx, who.account_id, message_id))[0].is_test:
        raise _not_found()


async def check_change(ctx: context.Context, who: caller.Caller, message_id: str) -> None:
    """The same before a message is changed: a key that is limited to sender domains changes no mail of others."""
    await check_mode(ctx, who, message_id)
    domains = who.key.limits.domains if who.key is not None else ()
    if domains:
        async with ctx.store.reading() as tx:
            _, (first, *_) = await find_in(tx, who.account_id, message_id)
            key = (who.account_id, message_id, first.id)
            sender_key = (await messages.event_details(tx, [key]))[key].sender_key
        if sender_key.rpartition("@")[2] not in domains:
            raise errors.Forbidden(f"this API key may only change messages from {', '.join(domains)}")


async def details(ctx: context.Context, account_id: str, message_id: str) -> Details:
    """One message with everything but its content."""
    async with ctx.store.reading() as tx:
        message, reached = await find_in(tx, account_id, message_id)
        stored = await messages.response(tx, account_id, message_id)
        tried = await attempts.of_message(tx, account_id, message_id)
        reported = await stored_async_bounces.of_message(tx, account_id, message_id)
    if stored is None:
        raise _not_found()
    return Details(message, reached, _RECEIPT.decode(stored[0]), tried, reported)


async def receipts(
    ctx: context.Context, account_id: str, listed: Sequence[messages.Message]
) -> dict[str, receipt.Receipt]:
    """The receipts of messages of an account, by message id."""
    async with ctx.store.scanning(account_id) as tx:
        stored = {one.id: await messages.response(tx, account_id, one.id) for one in listed}
    return {message_id: _RECEIPT.decode(found[0]) for message_id, found in stored.items() if found is not None}


async def recipients_of(
    ctx: context.Context, account_id: str, listed: Sequence[messages.Message]
) -> dict[str, list[recipients.Recipient]]:
    """The recipients of messages of an account, by message id."""
    async with ctx.store.scanning(account_id) as tx:
        return {one.id: await recipients.of_message(tx, account_id, one.id) for one in listed}


async def raw(ctx: context.Context, account_id: str, message_id: str) -> bytes:
    """The MIME of one message, as it is sent."""
    _check_id(message_id)
    async with ctx.store.scanning(account_id) as tx:
        body = await messages.body(tx, account_id, message_id)
    if body is None:
        raise errors.NotFound("no such message in this account, or its content is no longer retained")
    return body


async def page(
    ctx: context.Context,
    account_id: str,
    filters: Filters,
    *,
    limit: int,
    cursor: str | None,
    examined: int = MAX_EXAMINED,
) -> Page:
    """A page of an account's messages, newest first, after a cursor."""
    chosen = _chosen(filters, cursor)
    async with ctx.store.scanning(account_id) as tx:
        reach = await messages.plan_scan(tx, account_id, chosen, limit=examined)
        within = chosen if reach.floor is None else dataclasses.replace(chosen, after=reach.floor)
        found = await messages.page(tx, account_id, within, limit=limit + 1, index=reach.index)
    following = cursors.next_cursor([message.id for message in found], limit=limit)
    if following is not None or reach.floor is None:
        return Page(found[:limit], following, None)
    return Page(found, reach.floor, cursors.time_of(reach.floor, identifiers.MESSAGE))


async def search(
    ctx: context.Context, account_id: str, text: str, *, limit: int, cursor: str | None, examined: int = MAX_EXAMINED
) -> SearchPage:
    """A page of search results; `search_query.QueryError` points at a mistake in the text."""
    query = search_query.parse(text)
    filters = _filters(query, now=ctx.clock())
    part = await page(ctx, account_id, filters, limit=limit, cursor=cursor, examined=examined)
    async with ctx.store.reading() as tx:
        first = await recipients.first_of_messages(tx, account_id, [message.id for message in part.messages])
    return SearchPage(part.messages, part.next_cursor, part.searched_back_to, query, first)


def _filters(query: search_query.Query, *, now: int) -> Filters:
    return Filters(
        status=query.status,
        source=query.source,
        sender=query.sender,
        recipient=query.to,
        tag=query.tag,
        metadata=query.metadata,
        after=None if query.after is None else search_query.moment(query.after, now=now),
        before=None if query.before is None else search_query.moment(query.before, now=now),
        message_id=query.id,
        mode=query.mode or mail.Mode.LIVE,
        # The longest term is in the fewest subjects, so the others are rarely checked.
        words=tuple(sorted(query.words, key=len, reverse=True)),
    )


def _chosen(filters: Filters, cursor: str | None) -> messages.Filter:
    after = cursors.at(identifiers.MESSAGE, filters.after or 0)
    before = cursors.end(identifiers.MESSAGE)
    if filters.before is not None:
        before = cursors.at(identifiers.MESSAGE, filters.before)
    if cursor is not None:
        before = min(before, cursors.check("cursor", cursor, identifiers.MESSAGE))
    if filters.message_id is not None:
        # A list of one: from this id on, and before any that could follow it.
        after, before = max(after, filters.message_id), min(before, cursors.end(filters.message_id))
    if filters.tag is not None:
        labels.check("tag", filters.tag, limit=limits.TAG_CHARACTERS)
    return messages.Filter(
        after=after,
        before=before,
        status=filters.status,
        source=filters.source,
        sender_key=_address_key("from", filters.sender),
        recipient_key=_address_key("to", filters.recipient),
        tag=filters.tag,
        metadata=None if filters.metadata is None else search_query.metadata_entry(filters.metadata),
        is_test=int(filters.mode is mail.Mode.TEST) if filters.message_id is None else None,
        words=filters.words,
    )


def _address_key(field: str, text: str | None) -> str | None:
    if text is None:
        return None
    try:
        return address.parse(text).key
    except address.AddressError as problem:
        raise errors.InvalidRequest(f"{field}: {problem}") from None


def _check_id(message_id: str) -> None:
    if not identifiers.is_identifier(message_id, identifiers.MESSAGE):
        raise _not_found()


def _not_found() -> errors.NotFound:
    return errors.NotFound("no such message in this account")
