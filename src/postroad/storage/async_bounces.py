"""Asynchronous bounces and complaints: reports about recipients that are final, whose status they never change."""

from collections.abc import Sequence

import msgspec

from postroad.storage import store


class AsyncBounce(msgspec.Struct, frozen=True):
    """A row of `async_bounces`."""

    account_id: str
    message_id: str
    recipient_id: str
    received_at: int
    action: str
    status: str
    fault: str
    response: str


class ReportedRecipient(msgspec.Struct, frozen=True):
    """What a report is matched with: the address and status of a recipient."""

    id: str
    email_key: str
    status: str


async def addressees(tx: store.Transaction, account_id: str, message_id: str) -> list[ReportedRecipient]:
    """The recipients of one message."""
    return [ReportedRecipient(*row) for row in await tx.fetch("async_bounces.addressees", account_id, message_id)]


async def insert(tx: store.Transaction, bounces: Sequence[AsyncBounce]) -> None:
    """Store reports."""
    await tx.execute_many("async_bounces.insert", [msgspec.structs.astuple(bounce) for bounce in bounces])


async def of_message(tx: store.Transaction, account_id: str, message_id: str) -> list[AsyncBounce]:
    """The reports about one message, by recipient and time."""
    return [AsyncBounce(*row) for row in await tx.fetch("async_bounces.of_message", account_id, message_id)]
