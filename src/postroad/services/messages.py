"""Messages as their account sees them: one with its recipients, details and bytes, and the list with its filters."""

from dataclasses import dataclass
from typing import Final

import msgspec

from postroad import errors
from postroad.model import cursors, identifiers, labels, limits, mail, receipt
from postroad.protocol import address
from postroad.services import context
from postroad.storage import attempts, late_bounces, messages, recipients, store

_RECEIPT: Final = msgspec.json.Decoder(receipt.Receipt)


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """What a list shows; None filters nothing. Times are microseconds: from `after` on, and before `before`."""

    status: mail.MessageStatus | None = None
    source: mail.Source | None = None
    sender: str | None = None
    recipient: str | None = None
    tag: str | None = None
    after: int | None = None
    before: int | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """A part of a list, newest first; `next_cursor` is None at its end."""

    messages: list[messages.Message]
    next_cursor: str | None


@dataclass(frozen=True, slots=True)
class Details:
    """A message with its recipients, what its sender was told, each attempt, and the reports that came back later."""

    message: messages.Message
    recipients: list[recipients.Recipient]
    receipt: receipt.Receipt
    attempts: list[attempts.Attempt]
    late_bounces: list[late_bounces.LateBounce]


async def find(
    ctx: context.Context, account_id: str, message_id: str
) -> tuple[messages.Message, list[recipients.Recipient]]:
    """One message of an account and its recipients; one of another account does not exist."""
    _check_id(message_id)
    async with ctx.store.reading() as tx:
        return await _find(tx, account_id, message_id)


async def details(ctx: context.Context, account_id: str, message_id: str) -> Details:
    """One message of an account with everything that is known of it but its bytes."""
    _check_id(message_id)
    async with ctx.store.reading() as tx:
        message, reached = await _find(tx, account_id, message_id)
        stored = await messages.response(tx, account_id, message_id)
        tried = await attempts.of_message(tx, account_id, message_id)
        reported = await late_bounces.of_message(tx, account_id, message_id)
    if stored is None:
        raise _unknown()
    return Details(message, reached, _RECEIPT.decode(stored[0]), tried, reported)


async def raw(ctx: context.Context, account_id: str, message_id: str) -> bytes:
    """The MIME of one message of an account, as it is sent."""
    _check_id(message_id)
    async with ctx.store.scanning() as tx:
        body = await messages.body(tx, account_id, message_id)
    if body is None:
        raise errors.NotFound("there is no such message in this account, or its body is not kept any more")
    return body


async def page(ctx: context.Context, account_id: str, filters: Filters, *, limit: int, cursor: str | None) -> Page:
    """An account's messages, newest first, behind a cursor."""
    chosen = _chosen(filters, cursor)
    async with ctx.store.scanning() as tx:
        found = await messages.page(tx, account_id, chosen, limit=limit + 1)
    return Page(found[:limit], cursors.following([message.id for message in found], limit=limit))


def _chosen(filters: Filters, cursor: str | None) -> messages.Filter:
    before = cursors.end(identifiers.MESSAGE)
    if filters.before is not None:
        before = cursors.at(identifiers.MESSAGE, filters.before)
    if cursor is not None:
        before = min(before, cursors.check("cursor", cursor, identifiers.MESSAGE))
    if filters.tag is not None:
        labels.check("tag", filters.tag, most=limits.TAG_CHARACTERS)
    return messages.Filter(
        after=cursors.at(identifiers.MESSAGE, filters.after or 0),
        before=before,
        status=filters.status,
        source=filters.source,
        sender_key=_address_key("from", filters.sender),
        recipient_key=_address_key("to", filters.recipient),
        tag=filters.tag,
    )


def _address_key(field: str, text: str | None) -> str | None:
    if text is None:
        return None
    try:
        return address.parse(text).key
    except address.AddressError as problem:
        raise errors.InvalidRequest(f"{field}: {problem}") from None


async def _find(
    tx: store.Transaction, account_id: str, message_id: str
) -> tuple[messages.Message, list[recipients.Recipient]]:
    message = await messages.by_id(tx, account_id, message_id)
    if message is None:
        raise _unknown()
    return message, await recipients.of_message(tx, account_id, message_id)


def _check_id(message_id: str) -> None:
    if not identifiers.is_identifier(message_id, identifiers.MESSAGE):
        raise _unknown()


def _unknown() -> errors.NotFound:
    return errors.NotFound("there is no such message in this account")
