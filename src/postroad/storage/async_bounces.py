"""Reports that came back after a recipient was final: a log beside the recipient, whose state they never change."""

from collections.abc import Sequence

import msgspec

from postroad.storage import store


class LateBounce(msgspec.Struct, frozen=True):
    """A row of `late_bounces`."""

    account_id: str
    message_id: str
    recipient_id: str
    received_at: int
    action: str
    status: str
    fault: str
    response: str


class ReportedRecipient(msgspec.Struct, frozen=True):
    """What a report has to be held against: a recipient's address and how far it is."""

    id: str
    email_key: str
    status: str


async def account_of(tx: store.Transaction, message_id: str) -> str | None:
    """The account that a message belongs to: one look into the index for each account, so for rare questions only."""
    row = await tx.fetch_one("late_bounces.account_of", message_id)
    return str(row[0]) if row else None


async def addressees(tx: store.Transaction, account_id: str, message_id: str) -> list[ReportedRecipient]:
    """The recipients of one message."""
    return [ReportedRecipient(*row) for row in await tx.fetch("late_bounces.addressees", account_id, message_id)]


async def insert(tx: store.Transaction, bounces: Sequence[LateBounce]) -> None:
    """Write reports down."""
    await tx.execute_many("late_bounces.insert", [msgspec.structs.astuple(bounce) for bounce in bounces])


async def of_message(tx: store.Transaction, account_id: str, message_id: str) -> list[LateBounce]:
    """What was reported about one message, by recipient and time."""
    return [LateBounce(*row) for row in await tx.fetch("late_bounces.of_message", account_id, message_id)]
