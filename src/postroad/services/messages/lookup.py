"""Messages of an account: details, raw content, list, search and count, with or without what they say."""

import asyncio
import contextlib
import dataclasses
import datetime as dt
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from postroad import context, errors
from postroad.model.bounces import disposition, failure_causes, reasons
from postroad.model.delivery import providers
from postroad.model.mail import limits, send_request, statuses
from postroad.model.people import callers
from postroad.model.search import search_query, search_values
from postroad.model.units import identifiers, labels
from postroad.protocol.mime import address
from postroad.storage.engine import store
from postroad.storage.mail import attempts as stored_async_bounces
from postroad.storage.mail import message_search
from postroad.storage.mail import messages as stored_messages

_ConditionKind = message_search.Kind
# The kinds of `to:` and `from:`: an address, a domain, and the beginning of addresses.
_ADDRESSES: Final = {
    "to": (_ConditionKind.RECIPIENT, _ConditionKind.RECIPIENT_DOMAIN, _ConditionKind.RECIPIENT_PREFIX),
    "from": (_ConditionKind.SENDER, _ConditionKind.SENDER_DOMAIN, _ConditionKind.SENDER_PREFIX),
}
# Values that stand for something else than the others of their filter.
_OF_VALUES: Final[dict[tuple[str | None, str], tuple[_ConditionKind, str]]] = {
    ("status", search_values.SUPPRESSED): (_ConditionKind.UNATTEMPTED, statuses.RecipientStatus.BOUNCED.value),
    ("outcome", search_values.SUPPRESSED): (_ConditionKind.UNATTEMPTED, statuses.RecipientStatus.BOUNCED.value),
    ("status", search_values.UNSUBSCRIBED): (_ConditionKind.CAUSE, failure_causes.UNSUBSCRIBED),
    ("outcome", search_values.UNSUBSCRIBED): (_ConditionKind.CAUSE, failure_causes.UNSUBSCRIBED),
    ("outcome", search_values.RETRIED): (_ConditionKind.VERDICT, disposition.Verdict.RETRY.value),
    ("cause", failure_causes.ENDED): (_ConditionKind.UNATTEMPTED, statuses.RecipientStatus.FAILED.value),
}
_PLAIN: Final = {
    "source": _ConditionKind.SOURCE,
    "tag": _ConditionKind.TAG,
    "metadata": _ConditionKind.METADATA,
    None: _ConditionKind.WORD,
}


def conditions_of(clauses: tuple[search_query.Clause, ...]) -> tuple[message_search.Clause, ...]:
    """The conditions of each clause; the longest words first: they are in the fewest subjects."""
    return tuple(tuple(map(_condition, clause)) for clause in sorted(clauses, key=_cost))


def _cost(clause: search_query.Clause) -> int:
    return -len(clause[0].value) if clause[0].name is None else -search_query.MAX_CHARACTERS


def _condition(term: search_query.Term) -> message_search.Condition:
    kind, value = _OF_VALUES.get((term.name, term.value)) or _kind(term)
    return message_search.Condition(kind, value, term.is_negated)


def _kind(term: search_query.Term) -> tuple[message_search.Kind, str | int]:
    name, value = term.name, term.value
    match name:
        case "to" | "from":
            return _address(name, value)
        case "status" if value in tuple(statuses.MessageStatus):
            return _ConditionKind.STATUS, value
        case "status" | "outcome":
            return _ConditionKind.OUTCOME, value
        case "cause":
            return (_ConditionKind.FAULT if value in tuple(reasons.Fault) else _ConditionKind.REASON), value
        case "code":
            is_reply_code = search_values.is_reply_code(value)
            return (_ConditionKind.CODE, int(value)) if is_reply_code else (_ConditionKind.ENHANCED_CODE, value)
        case "provider":
            is_other = value == providers.OTHERS
            return (
                (_ConditionKind.OTHER_PROVIDER, providers.UPSTREAM_PREFIX)
                if is_other
                else (_ConditionKind.PROVIDER, value)
            )
        case "id":
            is_whole = identifiers.is_identifier(value, identifiers.MESSAGE)
            return (_ConditionKind.ID, value) if is_whole else (_ConditionKind.ID_PREFIX, value.removesuffix("*"))
        case _:
            return _PLAIN[name], value


def _address(name: str, value: str) -> tuple[message_search.Kind, str]:
    whole, domain, prefix = _ADDRESSES[name]
    if value.endswith("*"):
        return prefix, value.removesuffix("*")
    if value.startswith("@"):
        # A sender's domain is compared with the end of the address.
        return domain, value.removeprefix("@") if domain is _ConditionKind.RECIPIENT_DOMAIN else value
    return whole, address.parse(value).key


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
_RECEIPT: Final = msgspec.json.Decoder(send_request.Receipt)


class Filters(msgspec.Struct, frozen=True, kw_only=True):
    """Filters of a list; None does not filter. Times are microseconds: from `after` on, and before `before`.

    A list has live or test messages; with no mode it has both, for a message that is named.
    """

    status: statuses.MessageStatus | None = None
    source: statuses.Source | None = None
    sender: str | None = None
    recipient: str | None = None
    tag: str | None = None
    metadata: str | None = None
    after: int | None = None
    before: int | None = None
    message_id: str | None = None
    mode: statuses.Mode | None = statuses.Mode.LIVE
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
    query: search_query.Query


Found = tuple[stored_messages.Message, list[stored_messages.Recipient]]


@dataclass(frozen=True, slots=True)
class Details:
    """A message with its recipients, receipt, attempts, and reports that arrived later."""

    message: stored_messages.Message
    recipients: list[stored_messages.Recipient]
    receipt: send_request.Receipt
    attempts: list[stored_async_bounces.Attempt]
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
    return message, await stored_messages.recipients(tx, account_id, message_id)


async def check_mode(ctx: context.Context, who: callers.Caller, message_id: str) -> None:
    """A test key sees test messages only; to all others, both exist."""
    if who.is_test and not (await find(ctx, who.account_id, message_id))[0].is_test:
        raise _not_found()


async def check_change(ctx: context.Context, who: callers.Caller, message_id: str) -> None:
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
    async with ctx.store.reading() as tx:
        message, reached = await find_in(tx, account_id, message_id)
        stored = await stored_messages.response(tx, account_id, message_id)
        tried = await stored_async_bounces.of_message(tx, account_id, message_id)
        reported = await stored_async_bounces.async_bounces(tx, account_id, message_id)
        again = await stored_messages.resends(tx, account_id, message_id, limit=MAX_RESENDS)
        said = await stored_async_bounces.conversations(tx, account_id, message_id, limit=MAX_CONVERSATIONS)
    if stored is None:
        raise _not_found()
    return Details(message, reached, _RECEIPT.decode(stored[0]), tried, reported, again, said)


async def receipts(
    ctx: context.Context, account_id: str, listed: Sequence[stored_messages.Message]
) -> dict[str, send_request.Receipt]:
    """The receipts of messages of an account, by message id."""
    async with ctx.store.scanning(account_id) as tx:
        stored = {message.id: await stored_messages.response(tx, account_id, message.id) for message in listed}
    return {message_id: _RECEIPT.decode(found[0]) for message_id, found in stored.items() if found is not None}


async def recipients_of(
    ctx: context.Context, account_id: str, listed: Sequence[stored_messages.Message]
) -> dict[str, list[stored_messages.Recipient]]:
    """The recipients of messages of an account, by message id."""
    async with ctx.store.scanning(account_id) as tx:
        return {message.id: await stored_messages.recipients(tx, account_id, message.id) for message in listed}


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
        plan = await message_search.plan(tx, account_id, chosen, limit=max(1, examined // message_search.cost(chosen)))
        found = await message_search.page(tx, account_id, chosen, plan, limit=limit + 1)
    following = identifiers.next_cursor([message.id for message in found], limit=limit)
    if following is not None or plan.floor is None:
        return Page(found[:limit], following, None)
    return Page(found, plan.floor, identifiers.time_of(plan.floor, identifiers.MESSAGE))


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
        examined = max(1, examined // message_search.cost(chosen))
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
    (counted,) = await count_each(ctx, account_id, [filters], examined=examined)
    return counted


async def count_each(
    ctx: context.Context, account_id: str, searches: Iterable[Filters], *, examined: int
) -> list[Count]:
    """The same of several searches, for each of which so many entries are examined."""
    counts = []
    async with ctx.store.scanning(account_id) as tx:
        for filters in searches:
            chosen = _chosen(filters, None)
            # One more entry than is counted: `MAX_COUNT` matches and no other are an exact count.
            limit = examined // message_search.cost(chosen) + 1
            plan = await message_search.plan(tx, account_id, chosen, limit=limit)
            number = await message_search.count(tx, account_id, chosen, plan, limit=MAX_COUNT + 1)
            is_exact = plan.floor is None and number <= MAX_COUNT
            # The entry at the floor is one more than is counted.
            counts.append(Count(min(number, MAX_COUNT, examined), is_exact=is_exact))
    return counts


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
    everywhere = None if query.id else statuses.Mode.LIVE
    return Filters(
        after=None if query.after is None else search_query.moment(query.after, now=now, zone=zone),
        before=None if query.before is None else search_query.moment(query.before, now=now, zone=zone),
        message_id=query.id,
        mode=statuses.Mode(query.mode) if query.mode else everywhere,
        clauses=query.clauses(),
    )


def _chosen(filters: Filters, cursor: str | None) -> message_search.Filter:
    after = identifiers.at(identifiers.MESSAGE, filters.after or 0)
    before = identifiers.end(identifiers.MESSAGE)
    if filters.before is not None:
        before = identifiers.at(identifiers.MESSAGE, filters.before)
    if cursor is not None:
        before = min(before, identifiers.check("cursor", cursor, identifiers.MESSAGE))
    if filters.message_id is not None:
        # From the id or its beginning on, and before any that could follow it: of a whole id, a list of one.
        first = filters.message_id.removesuffix("*")
        after, before = max(after, first), min(before, identifiers.end(first))
    return message_search.Filter(
        after=after,
        before=before,
        is_test=None if filters.mode is None else int(filters.mode is statuses.Mode.TEST),
        clauses=conditions_of((*_plain_clauses(filters), *filters.clauses)),
    )


def _plain_clauses(filters: Filters) -> list[search_query.Clause]:
    if filters.tag is not None:
        labels.check_label("tag", filters.tag, limit=limits.TAG_CHARACTERS)
    if filters.metadata is not None:
        search_query.metadata_entry(filters.metadata)
    for name, given in (("from", filters.sender), ("to", filters.recipient)):
        if given is not None:
            labels.parse_mailbox(name, given)
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


def _check_id(message_id: str) -> None:
    if not identifiers.is_identifier(message_id, identifiers.MESSAGE):
        raise _not_found()


def _not_found() -> errors.NotFound:
    return errors.NotFound("no such message in this account")


# Two directions take as long as one page.
NEIGHBOURS_EXAMINED: Final = MAX_EXAMINED // 2
# A person waits for the page. Usually it takes some hundredths of a second.
NEIGHBOURS_SECONDS: Final = 2.0


class Neighbours(msgspec.Struct, frozen=True):
    """The ids of the next newer and the next older message; None where there is none, or none was found soon enough."""

    newer: str | None = None
    older: str | None = None


async def find_neighbours(ctx: context.Context, account_id: str, filters: Filters, message_id: str) -> Neighbours:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(NEIGHBOURS_SECONDS):
            newer, older = [
                await neighbour(ctx, account_id, filters, message_id, is_newer=is_newer, examined=NEIGHBOURS_EXAMINED)
                for is_newer in (True, False)
            ]
            return Neighbours(newer, older)
    return Neighbours()


# Messages without their content, for those who may see what became of them and not what they say: the role `analyst`
# (model/people/callers.py), and an operator who views an account. Addresses and tags stay: states and statistics are
# about them. Searches for hidden words are refused, because their results would tell them one by one.

HIDDEN_SUBJECT: Final = "Subject hidden"
# The filters whose results depend on content; words of the subject have no name.
_FILTERS: Final = frozenset({None, "metadata"})


def message_without_content(row: stored_messages.Message) -> stored_messages.Message:
    return dataclasses.replace(row, subject=HIDDEN_SUBJECT, metadata=None)


def receipt_without_content(given: send_request.Receipt) -> send_request.Receipt:
    """What was accepted, without subject, metadata, header fields and attachments."""
    return msgspec.structs.replace(given, subject=HIDDEN_SUBJECT, metadata=msgspec.UNSET, headers={}, attachments=())


def details_without_content(found: Details) -> Details:
    """A message with its details, without the same."""
    return dataclasses.replace(
        found, message=message_without_content(found.message), receipt=receipt_without_content(found.receipt)
    )


def check_search_without_content(text: str) -> search_query.Query:
    """The query of a text; refused if its results depend on content."""
    query = search_query.parse(text)
    if any(term.name in _FILTERS for clause in query.clauses() for term in clause):
        raise search_query.QueryError("subjects and metadata are hidden, and cannot be searched", 0, len(text))
    return query


def can_search_without_content(text: str) -> bool:
    try:
        check_search_without_content(text)
    except search_query.QueryError:
        return False
    return True
