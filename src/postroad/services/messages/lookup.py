"""Messages of an account: details, raw content, list, search and count.

A page is found by examining at most `MAX_EXAMINED` entries of the most selective index, whatever the filters. A page
can therefore have few messages, or none, and still have a cursor to continue from. A count has the same bound.
"""

import dataclasses
import datetime as dt
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from postroad import errors
from postroad.model import caller, cursors, identifiers, labels, limits, mail, search_query
from postroad.model import receipt as model_receipt
from postroad.protocol import address
from postroad.services import context
from postroad.services.messages import conditions
from postroad.storage import async_bounces as stored_async_bounces
from postroad.storage import attempts as stored_attempts
from postroad.storage import message_search, resends, search_conditions, store
from postroad.storage import messages as stored_messages
from postroad.storage import recipients as stored_recipients

# At worst about 60 ms of work on SQLite and 110 ms on PostgreSQL: when all are far apart and none matches. With several
# conditions about recipients, which all recipients of a message are tested for, it is so many times fewer.
MAX_EXAMINED: Final = 10_000
# Up to here a count is exact.
MAX_COUNT: Final = 10_000
# Messages of one step through all matches.
MATCHES_PER_STEP: Final = 500
# More are a program that repeats itself.
MAX_RESENDS: Final = 20
# The latest ones: 4 KiB each, and a message may have hundreds of attempts.
MAX_CONVERSATIONS: Final = 50
_RECEIPT: Final = msgspec.json.Decoder(model_receipt.Receipt)


class Filters(msgspec.Struct, frozen=True, kw_only=True):
    """Filters of a list; None does not filter. Times are microseconds: from `after` on, and before `before`.

    A list has live or test messages; with no mode it has both, for a message that is named.
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
    mode: mail.Mode | None = mail.Mode.LIVE
    words: tuple[str, ...] = ()
    # Every clause of a search, beside the filters above.
    clauses: tuple[search_query.Clause, ...] = ()


class Count(msgspec.Struct, frozen=True):
    """How many messages match: at least `number`, and exactly that many if `is_exact`."""

    number: int
    is_exact: bool

    def __str__(self) -> str:
        if self.is_exact:
            return f"{self.number:,}"
        return f"more than {self.number:,}" if self.number == MAX_COUNT else f"at least {self.number:,}"


@dataclass(frozen=True, slots=True)
class Page:
    """A page of a list, newest first; `next_cursor` is None at the end."""

    messages: list[stored_messages.Message]
    next_cursor: str | None
    # When the oldest examined message was accepted; None when no bound was met.
    searched_back_to: int | None

    @property
    def count(self) -> Count | None:
        """How many match from here on; None when the page is full, and there are more."""
        if self.next_cursor is not None and self.searched_back_to is None:
            return None
        return Count(len(self.messages), is_exact=self.next_cursor is None)


@dataclass(frozen=True, slots=True)
class SearchPage(Page):
    """A page of search results, and the search."""

    query: search_query.Query


Found = tuple[stored_messages.Message, list[stored_recipients.Recipient]]


@dataclass(frozen=True, slots=True)
class Details:
    """A message with its recipients, receipt, attempts, and reports that arrived later."""

    message: stored_messages.Message
    recipients: list[stored_recipients.Recipient]
    receipt: model_receipt.Receipt
    attempts: list[stored_attempts.Attempt]
    async_bounces: list[stored_async_bounces.AsyncBounce]
    # As which messages it was sent again, newest first.
    resent_as: list[str]
    # What was said in attempts that did not succeed, by recipient and time.
    conversations: Mapping[tuple[str, int], str]


async def find(ctx: context.Context, account_id: str, message_id: str) -> Found:
    """One message of an account and its recipients; a message of another account does not exist."""
    async with ctx.store.reading() as tx:
        return await find_in(tx, account_id, message_id)


async def find_in(tx: store.Transaction, account_id: str, message_id: str) -> Found:
    """The same within a transaction."""
    _check_id(message_id)
    message = await stored_messages.by_id(tx, account_id, message_id)
    if message is None:
        raise _not_found()
    return message, await stored_recipients.of_message(tx, account_id, message_id)


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
            sender_key = (await stored_messages.event_details(tx, [key]))[key].sender_key
        if sender_key.rpartition("@")[2] not in domains:
            raise errors.Forbidden(f"this API key may only change messages from {', '.join(domains)}")


async def details(ctx: context.Context, account_id: str, message_id: str) -> Details:
    """One message with everything but its content."""
    async with ctx.store.reading() as tx:
        message, reached = await find_in(tx, account_id, message_id)
        stored = await stored_messages.response(tx, account_id, message_id)
        tried = await stored_attempts.of_message(tx, account_id, message_id)
        reported = await stored_async_bounces.of_message(tx, account_id, message_id)
        again = await resends.of_message(tx, account_id, message_id, limit=MAX_RESENDS)
        said = await stored_attempts.conversations(tx, account_id, message_id, limit=MAX_CONVERSATIONS)
    if stored is None:
        raise _not_found()
    return Details(message, reached, _RECEIPT.decode(stored[0]), tried, reported, again, said)


async def receipts(
    ctx: context.Context, account_id: str, listed: Sequence[stored_messages.Message]
) -> dict[str, model_receipt.Receipt]:
    """The receipts of messages of an account, by message id."""
    async with ctx.store.scanning(account_id) as tx:
        stored = {one.id: await stored_messages.response(tx, account_id, one.id) for one in listed}
    return {message_id: _RECEIPT.decode(found[0]) for message_id, found in stored.items() if found is not None}


async def recipients_of(
    ctx: context.Context, account_id: str, listed: Sequence[stored_messages.Message]
) -> dict[str, list[stored_recipients.Recipient]]:
    """The recipients of messages of an account, by message id."""
    async with ctx.store.scanning(account_id) as tx:
        return {one.id: await stored_recipients.of_message(tx, account_id, one.id) for one in listed}


async def raw(ctx: context.Context, account_id: str, message_id: str) -> bytes:
    """The MIME of one message, as it is sent."""
    _check_id(message_id)
    async with ctx.store.scanning(account_id) as tx:
        body = await stored_messages.body(tx, account_id, message_id)
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
        plan = await message_search.plan(
            tx, account_id, chosen, limit=max(1, examined // search_conditions.cost(chosen))
        )
        found = await message_search.page(tx, account_id, chosen, plan, limit=limit + 1)
    following = cursors.next_cursor([message.id for message in found], limit=limit)
    if following is not None or plan.floor is None:
        return Page(found[:limit], following, None)
    return Page(found, plan.floor, cursors.time_of(plan.floor, identifiers.MESSAGE))


async def neighbour(
    ctx: context.Context, account_id: str, filters: Filters, message_id: str, *, is_newer: bool, examined: int
) -> str | None:
    """The id of the next message that matches, newer or older; None: there is none among so many entries."""
    chosen = _chosen(filters, None)
    if is_newer:
        # No id is between one and itself with one more digit.
        chosen = dataclasses.replace(chosen, after=max(chosen.after, f"{message_id}0"))
    else:
        chosen = dataclasses.replace(chosen, before=min(chosen.before, message_id))
    async with ctx.store.scanning(account_id) as tx:
        examined = max(1, examined // search_conditions.cost(chosen))
        plan = await message_search.plan(tx, account_id, chosen, limit=examined, is_oldest_first=is_newer)
        found = await message_search.page(tx, account_id, chosen, plan, limit=1)
    return found[0].id if found else None


async def search(
    ctx: context.Context,
    account_id: str,
    text: str,
    *,
    limit: int,
    cursor: str | None,
    examined: int = MAX_EXAMINED,
    zone: dt.tzinfo = dt.UTC,
) -> SearchPage:
    """A page of search results; `search_query.QueryError` points at a mistake in the text.

    Times without a zone are those of `zone`.
    """
    query = search_query.parse(text)
    part = await page(ctx, account_id, filters_of(ctx, query, zone=zone), limit=limit, cursor=cursor, examined=examined)
    return SearchPage(part.messages, part.next_cursor, part.searched_back_to, query)


async def count(ctx: context.Context, account_id: str, filters: Filters, *, examined: int = MAX_EXAMINED) -> Count:
    """How many messages match, as far as that many entries of an index tell: see `Count`."""
    chosen = _chosen(filters, None)
    async with ctx.store.scanning(account_id) as tx:
        # One more entry than is counted: `MAX_COUNT` matches and no other are an exact count.
        limit = examined // search_conditions.cost(chosen) + 1
        plan = await message_search.plan(tx, account_id, chosen, limit=limit)
        number = await message_search.count(tx, account_id, chosen, plan, limit=MAX_COUNT + 1)
    return Count(min(number, MAX_COUNT), is_exact=plan.floor is None and number <= MAX_COUNT)


async def matches(
    ctx: context.Context, account_id: str, filters: Filters, *, limit: int = MATCHES_PER_STEP
) -> AsyncIterator[list[stored_messages.Message]]:
    """All messages that match, newest first, up to `limit` in a step; a step without a match is an empty list.

    Each step is a transaction of its own, so nothing is held while the caller works. What is accepted after the first
    step is not among them.
    """
    part = await page(ctx, account_id, filters, limit=limit, cursor=None)
    yield part.messages
    while part.next_cursor is not None:
        part = await page(ctx, account_id, filters, limit=limit, cursor=part.next_cursor)
        yield part.messages


def filters_of(ctx: context.Context, query: search_query.Query, *, zone: dt.tzinfo = dt.UTC) -> Filters:
    """The filters of a search; ages are from now on, and times without a zone are those of `zone`."""
    now = ctx.clock()
    everywhere = None if query.id else mail.Mode.LIVE
    return Filters(
        after=None if query.after is None else search_query.moment(query.after, now=now, zone=zone),
        before=None if query.before is None else search_query.moment(query.before, now=now, zone=zone),
        message_id=query.id,
        mode=mail.Mode(query.mode) if query.mode else everywhere,
        clauses=query.clauses(),
    )


def _chosen(filters: Filters, cursor: str | None) -> search_conditions.Filter:
    after = cursors.at(identifiers.MESSAGE, filters.after or 0)
    before = cursors.end(identifiers.MESSAGE)
    if filters.before is not None:
        before = cursors.at(identifiers.MESSAGE, filters.before)
    if cursor is not None:
        before = min(before, cursors.check("cursor", cursor, identifiers.MESSAGE))
    if filters.message_id is not None:
        # From the id or its beginning on, and before any that could follow it: of a whole id, a list of one.
        first = filters.message_id.removesuffix("*")
        after, before = max(after, first), min(before, cursors.end(first))
    return search_conditions.Filter(
        after=after,
        before=before,
        is_test=None if filters.mode is None else int(filters.mode is mail.Mode.TEST),
        clauses=conditions.of_clauses((*_plain_clauses(filters), *filters.clauses)),
    )


def _plain_clauses(filters: Filters) -> list[search_query.Clause]:
    if filters.tag is not None:
        labels.check("tag", filters.tag, limit=limits.TAG_CHARACTERS)
    if filters.metadata is not None:
        search_query.metadata_entry(filters.metadata)
    for name, given in (("from", filters.sender), ("to", filters.recipient)):
        _check_address(name, given)
    named = {
        "status": filters.status,
        "source": filters.source,
        "from": filters.sender,
        "to": filters.recipient,
        "tag": filters.tag,
        "metadata": filters.metadata,
    }
    plain = [(search_query.Term(name, value),) for name, value in named.items() if value is not None]
    return [*plain, *((search_query.Term(None, word),) for word in filters.words)]


def _check_address(name: str, text: str | None) -> None:
    try:
        if text is not None:
            address.parse(text)
    except address.AddressError as problem:
        raise errors.InvalidRequest(f"{name}: {problem}") from None


def _check_id(message_id: str) -> None:
    if not identifiers.is_identifier(message_id, identifiers.MESSAGE):
        raise _not_found()


def _not_found() -> errors.NotFound:
    return errors.NotFound("no such message in this account")
