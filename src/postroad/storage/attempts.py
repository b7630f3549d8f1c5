"""The log of attempts: when, where, how, what the destination said, and what followed from it."""

from collections.abc import Sequence

import msgspec

from postroad.storage import store


class Attempt(msgspec.Struct, frozen=True):
    """A row of `attempts`. `duration` is in microseconds; `host` is empty when there was none to speak to."""

    account_id: str
    message_id: str
    recipient_id: str
    started_at: int
    duration: int
    pool: str
    host: str
    address: str
    tls: str
    stage: str
    verdict: str
    fault: str | None
    reason: str
    smtp_code: int | None
    enhanced_code: str
    response: str
    in_doubt: int


async def insert(tx: store.Transaction, attempts: Sequence[Attempt]) -> None:
    """Write attempts."""
    await tx.execute_many("attempts.insert", [msgspec.structs.astuple(attempt) for attempt in attempts])


async def of_message(tx: store.Transaction, account_id: str, message_id: str) -> list[Attempt]:
    """The attempts of one message, recipient by recipient, in order."""
    return [Attempt(*row) for row in await tx.fetch("attempts.of_message", account_id, message_id)]
