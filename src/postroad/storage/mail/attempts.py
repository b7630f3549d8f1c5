"""What happened to recipients: delivery attempts with their replies, later reports, and a scan of the newest."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import msgspec

from postroad.storage.engine import queries, store

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
    await tx.execute_later("attempts.insert", [msgspec.structs.astuple(attempt) for attempt in attempts])


async def insert_conversations(tx: store.Transaction, said: Sequence[tuple[Attempt, str]]) -> None:
    rows = [
        (attempt.account_id, attempt.message_id, attempt.recipient_id, attempt.started_at, text)
        for attempt, text in said
    ]
    await tx.execute_later("attempts.insert_conversations", rows)


async def conversations(
    tx: store.Transaction, account_id: str, message_id: str, *, limit: int
) -> dict[tuple[str, int], str]:
    """What was said in the latest attempts of a message that did not succeed, by recipient and time of the attempt."""
    rows = await tx.fetch("attempts.conversations", account_id, message_id, limit)
    return {(row[0], row[1]): row[2] for row in rows}


@queries.rows("attempts.of_message", Attempt)
async def of_message(
    tx: store.Transaction, account_id: str, message_id: str, *, limit: int = MAX_OF_MESSAGE
) -> list[Attempt]: ...
@queries.rows("attempts.latest_refused", FinalRefusal)
async def latest_refused(tx: store.Transaction, account_id: str, *, limit: int) -> list[FinalRefusal]: ...


async def latest_ends(
    tx: store.Transaction, account_id: str, message_ids: Sequence[str], *, limit: int, characters: int
) -> list[AttemptEnd]:
    """The ends of the latest attempts of each message, latest first, with so much of each reply."""
    wanted = [(account_id, message_id, limit, characters) for message_id in message_ids]
    return [AttemptEnd(*row) for row in await tx.fetch_many("attempts.latest_ends_of_message", wanted)]


async def last_ends(tx: store.Transaction, account_id: str, message_ids: Sequence[str]) -> dict[str, int]:
    """When the last attempt for each recipient of messages ended. There may be thousands, so nothing else is read."""
    rows = await tx.fetch_many(
        "attempts.last_ends_of_message", [(account_id, message_id) for message_id in message_ids]
    )
    return {row[0]: row[1] for row in rows}


@queries.rows("attempts.refusal_examples", RefusalExample)
async def refusal_examples(
    tx: store.Transaction, account_id: str, *, started_from: int, started_until: int, limit: int
) -> list[RefusalExample]: ...


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


@queries.rows("async_bounces.addressees", ReportedRecipient)
async def addressees(tx: store.Transaction, account_id: str, message_id: str) -> list[ReportedRecipient]: ...


async def insert_async_bounces(tx: store.Transaction, bounces: Sequence[AsyncBounce]) -> None:
    await tx.execute_many("async_bounces.insert", [msgspec.structs.astuple(bounce) for bounce in bounces])


@queries.rows("async_bounces.of_message", AsyncBounce)
async def async_bounces(tx: store.Transaction, account_id: str, message_id: str) -> list[AsyncBounce]: ...


async def reported_at(
    tx: store.Transaction, account_id: str, action: str, *, after: str, before: str, limit: int
) -> list[str]:
    """The provider queues of recipients with such a report, of messages with ids in this range."""
    rows = await tx.fetch("async_bounces.providers_of", account_id, after, before, action, limit)
    return [row[0] for row in rows if row[0] is not None]


# The newest recipients of an account's mail, one by one: for what no count has, such as a tag or the time of delivery.
#
# A scan is bounded twice: by the messages that it examines (`floor` finds the oldest of them) and by the recipients
# that it returns. Test mail is left out.


@dataclass(frozen=True, slots=True)
class ScanScope:
    """Messages with ids from `after` on and before `before`, with a tag, or from senders in a domain; empty for any."""

    after: str
    before: str
    tag: str = ""
    domain: str = ""


class ScannedRecipient(NamedTuple):
    """A recipient with the times of its message. `provider_queue` is that of the last attempt, None without one."""

    message_id: str
    created_at: int
    send_at: int | None
    status: str
    attempt_count: int
    delivered_at: int | None
    provider_queue: str | None


async def scan_floor(tx: store.Transaction, account_id: str, scope: ScanScope, *, examined: int) -> str | None:
    """The oldest of so many messages; None when there are fewer."""
    if scope.tag:
        row = await tx.fetch_one(
            "recipient_scan.floor_by_tag", account_id, scope.after, scope.before, examined - 1, scope.tag
        )
    else:
        row = await tx.fetch_one("recipient_scan.floor_by_time", account_id, scope.after, scope.before, examined - 1)
    return None if row is None else str(row[0])


async def newest_recipients(
    tx: store.Transaction, account_id: str, scope: ScanScope, *, limit: int
) -> list[ScannedRecipient]:
    """The recipients of the scope, newest messages first. The scope should begin at its floor."""
    suffix = f"@{scope.domain}" if scope.domain else ""
    bounds = account_id, scope.after, scope.before, limit, suffix
    if scope.tag:
        rows = await tx.fetch("recipient_scan.by_tag", *bounds, scope.tag)
    else:
        rows = await tx.fetch("recipient_scan.by_time", *bounds)
    return [ScannedRecipient(*row) for row in rows]
