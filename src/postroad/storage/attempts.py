"""The log of delivery attempts: time, host, TLS, the reply, and its classification."""

from collections.abc import Sequence
from typing import Final

import msgspec

from postroad.storage import store

# Fifty recipients for five days have fewer, unless their sender retries again and again.
MAX_OF_MESSAGE: Final = 2_000


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
    source: str = ""  # the name of the source address, if the system did not choose it


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


class AttemptEnd(msgspec.Struct, frozen=True):
    """When an attempt ended, and how."""

    recipient_id: str
    at: int
    verdict: str
    smtp_code: int | None
    response: str


class RefusalExample(msgspec.Struct, frozen=True):
    """A final refusal: what was replied, to which message."""

    message_id: str
    started_at: int
    provider_queue: str
    reason: str
    smtp_code: int | None
    response: str


async def insert(tx: store.Transaction, attempts: Sequence[Attempt]) -> None:
    """Store attempts."""
    await tx.execute_later("attempts.insert", [msgspec.structs.astuple(attempt) for attempt in attempts])


async def insert_conversations(tx: store.Transaction, said: Sequence[tuple[Attempt, str]]) -> None:
    """Store what was said in attempts."""
    rows = [(one.account_id, one.message_id, one.recipient_id, one.started_at, text) for one, text in said]
    await tx.execute_later("attempts.insert_conversations", rows)


async def conversations(
    tx: store.Transaction, account_id: str, message_id: str, *, limit: int
) -> dict[tuple[str, int], str]:
    """What was said in the latest attempts of a message that did not succeed, by recipient and time of the attempt."""
    rows = await tx.fetch("attempts.conversations", account_id, message_id, limit)
    return {(row[0], row[1]): row[2] for row in rows}


async def of_message(tx: store.Transaction, account_id: str, message_id: str) -> list[Attempt]:
    """The latest MAX_OF_MESSAGE attempts of one message, recipient by recipient, in order."""
    return [Attempt(*row) for row in await tx.fetch("attempts.of_message", account_id, message_id, MAX_OF_MESSAGE)]


async def latest_refused(tx: store.Transaction, account_id: str, *, limit: int) -> list[FinalRefusal]:
    """The latest final refusals of an account's mail, newest first."""
    return [FinalRefusal(*row) for row in await tx.fetch("attempts.latest_refused", account_id, limit)]


async def latest_ends(
    tx: store.Transaction, account_id: str, message_ids: Sequence[str], *, limit: int, characters: int
) -> list[AttemptEnd]:
    """The ends of the latest attempts of each message, latest first, with so much of each reply."""
    wanted = [(account_id, one, limit, characters) for one in message_ids]
    return [AttemptEnd(*row) for row in await tx.fetch_many("attempts.latest_ends_of_message", wanted)]


async def last_ends(tx: store.Transaction, account_id: str, message_ids: Sequence[str]) -> dict[str, int]:
    """When the last attempt for each recipient of messages ended. There may be thousands, so nothing else is read."""
    rows = await tx.fetch_many("attempts.last_ends_of_message", [(account_id, one) for one in message_ids])
    return {row[0]: row[1] for row in rows}


async def refusal_examples(
    tx: store.Transaction, account_id: str, *, started_from: int, started_until: int, limit: int
) -> list[RefusalExample]:
    """The latest final refusals between two times, newest first."""
    rows = await tx.fetch("attempts.refusal_examples", account_id, started_from, started_until, limit)
    return [RefusalExample(*row) for row in rows]
