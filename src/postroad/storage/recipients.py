"""Recipients: one row for each unique address of a message, whichever field named it."""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from postroad.storage import store


class NewRecipient(msgspec.Struct, frozen=True, array_like=True):
    """A new recipient. `email_key` is the address in lower case."""

    message_id: str
    id: str
    account_id: str
    email: str
    email_key: str
    domain: str


@dataclass(frozen=True, slots=True)
class Recipient:
    """A row of `recipients`."""

    id: str
    message_id: str
    email: str
    status: str
    billing_status: str
    attempt_count: int
    last_smtp_code: int | None
    last_smtp_response: str | None
    delivered_at: int | None
    bounced_at: int | None


class LeadingRecipient(msgspec.Struct, frozen=True):
    """The recipient that says most about its message; `reason` is the one of its last attempt."""

    email: str
    status: str
    attempt_count: int
    last_smtp_code: int | None
    last_smtp_response: str | None
    reason: str | None


class Sent(msgspec.Struct, frozen=True):
    """A message as one of its recipients has it."""

    message_id: str
    subject: str
    created_at: int
    is_test: int
    status: str
    attempt_count: int
    last_smtp_code: int | None
    last_smtp_response: str | None


class RecipientResult(msgspec.Struct, frozen=True):
    """A recipient, and the reason and enhanced status code of its last attempt."""

    message_id: str
    id: str
    email: str
    status: str
    attempt_count: int
    last_smtp_code: int | None
    last_smtp_response: str | None
    delivered_at: int | None
    bounced_at: int | None
    reason: str | None
    enhanced_code: str | None


class RecipientUpdate(msgspec.Struct, frozen=True):
    """The new state of a recipient after an attempt, or without one; `attempts` is added to the count."""

    account_id: str
    message_id: str
    id: str
    status: str
    billing_status: str
    attempts: int
    last_smtp_code: int | None
    last_smtp_response: str | None
    delivered_at: int | None
    bounced_at: int | None


class Tally(msgspec.Struct, frozen=True):
    """Counts of the recipients of one message."""

    account_id: str
    message_id: str
    recipients: int
    delivered: int
    reserved: int
    released: int


async def insert(tx: store.Transaction, recipients: Sequence[NewRecipient]) -> None:
    """Store the recipients of accepted messages."""
    rows = [msgspec.structs.astuple(recipient) for recipient in recipients]
    await tx.execute_later("recipients.insert", rows)


async def of_message(tx: store.Transaction, account_id: str, message_id: str) -> list[Recipient]:
    """The recipients of one message, in the order of the request."""
    return [Recipient(*row) for row in await tx.fetch("recipients.of_message", account_id, message_id)]


async def leading_of_messages(
    tx: store.Transaction, account_id: str, message_ids: Sequence[str]
) -> dict[str, LeadingRecipient]:
    """The recipient of each message that says most about it, failures first, by the message."""
    rows = await tx.fetch_many("recipients.leading_of_message", [(account_id, one) for one in message_ids])
    return {row[0]: LeadingRecipient(*row[1:]) for row in rows}


async def of_address(tx: store.Transaction, account_id: str, email_key: str, *, limit: int) -> list[Sent]:
    """The messages to one address, newest first."""
    return [Sent(*row) for row in await tx.fetch("recipients.of_address", account_id, email_key, limit)]


async def first_sent_at(tx: store.Transaction, account_id: str, email_key: str) -> int | None:
    """When the oldest message to an address was accepted."""
    row = await tx.fetch_one("recipients.first_of_address", account_id, email_key)
    return int(row[0]) if row else None


async def results_of_messages(
    tx: store.Transaction, account_id: str, message_ids: Sequence[str]
) -> dict[str, list[RecipientResult]]:
    """The recipients of messages, in the order of the request, by the message."""
    found: dict[str, list[RecipientResult]] = {}
    for row in await tx.fetch_many("recipients.results_of_message", [(account_id, one) for one in message_ids]):
        found.setdefault(row[0], []).append(RecipientResult(*row))
    return found


async def record(tx: store.Transaction, updates: Sequence[RecipientUpdate]) -> set[tuple[str, str, str]]:
    """Update recipients; those that are final already are neither changed nor returned."""
    rows = await tx.fetch_many("recipients.record", [msgspec.structs.astuple(update) for update in updates])
    return {(account_id, message_id, recipient_id) for account_id, message_id, recipient_id in rows}


async def tally(tx: store.Transaction, messages: Sequence[tuple[str, str]]) -> list[Tally]:
    """The counts of messages, given by account and id."""
    return [Tally(*row) for row in await tx.fetch_many("recipients.tally", messages)]
