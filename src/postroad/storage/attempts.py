"""The log of delivery attempts: time, host, TLS, the reply, and its classification."""

from collections.abc import Sequence

import msgspec

from postroad.storage import store


class Attempt(msgspec.Struct, frozen=True):
    """A row of `attempts`. `duration` is in microseconds; `host` is empty when none was reached."""

    account_id: str
    message_id: str
    recipient_id: str
    started_at: int
    duration: int
    provider_queue: str
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


class FinalRefusal(msgspec.Struct, frozen=True):
    """An attempt that ended with a final refusal, with the recipient's address."""

    message_id: str
    recipient_id: str
    email: str
    started_at: int
    verdict: str
    fault: str | None
    reason: str
    smtp_code: int | None
    response: str


async def insert(tx: store.Transaction, attempts: Sequence[Attempt]) -> None:
    """Store attempts."""
    await tx.execute_many("attempts.insert", [msgspec.structs.astuple(attempt) for attempt in attempts])


async def of_message(tx: store.Transaction, account_id: str, message_id: str) -> list[Attempt]:
    """The attempts of one message, recipient by recipient, in order."""
    return [Attempt(*row) for row in await tx.fetch("attempts.of_message", account_id, message_id)]


async def latest_refused(tx: store.Transaction, account_id: str, *, limit: int) -> list[FinalRefusal]:
    """The latest final refusals of an account's mail, newest first."""
    return [FinalRefusal(*row) for row in await tx.fetch("attempts.latest_refused", account_id, limit)]
