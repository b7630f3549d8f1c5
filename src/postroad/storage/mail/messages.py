"""Messages with their bodies, tags, metadata, recipients and idempotency keys. Ids sort by time: an id is a cursor."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from postroad.storage.engine import queries, store

# Bodies up to this size are inserted with the rest; to add more of them in bulk is worth a round trip of its own.
MAX_INSERTED_BYTES: Final = 256 * 1024
_METADATA = msgspec.json.Decoder(dict[str, str])


class NewMessage(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """A new message: its columns in the order of `insert`, then what has tables of its own."""

    id: str
    account_id: str
    credential_id: str
    source: str
    sender: str
    sender_key: str
    subject: str
    recipient_count: int
    # One for each recipient, or 0 for mail that is not charged.
    credits_reserved: int
    size: int
    request_id: str
    response: bytes
    created_at: int
    # The domain of its envelope senders; empty: the sender's own.
    return_path_domain: str = ""
    # The caller's own data, a JSON object of strings.
    metadata: str | None = None
    # Not before and not after this time.
    send_at: int | None = None
    expires_at: int | None = None
    # 1: it goes to the simulator.
    is_test: int = 0
    mime: bytes
    tags: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Message:
    """A row of `messages`, without the stored response."""

    id: str
    account_id: str
    source: str
    sender: str
    subject: str
    status: str
    billing_status: str
    recipient_count: int
    credits_reserved: int
    size: int
    request_id: str
    created_at: int
    send_at: int | None = None
    expires_at: int | None = None
    is_test: int = 0
    # Only where a single message is read. It has ended when all recipients are final.
    metadata: str | None = None
    ended_at: int | None = None


class Outgoing(msgspec.Struct, frozen=True, weakref=True):
    """What delivery needs from a message."""

    account_id: str
    id: str
    sender_key: str
    recipient_count: int
    mime: bytes
    return_path_domain: str = ""


class EventDetails(msgspec.Struct, frozen=True):
    """What an event contains about a recipient and its message."""

    email: str
    sender_key: str
    subject: str
    return_path_domain: str = ""
    is_test: int = 0


class EventContext(msgspec.Struct, frozen=True):
    """What an event of version 2 contains besides, and when the message is sent if that is later."""

    attempt_count: int
    sender: str
    metadata: str | None
    send_at: int | None = None
    source: str = ""


async def insert(tx: store.Transaction, messages: Sequence[NewMessage]) -> None:
    """Store accepted messages, their bodies, and what they are found by."""
    rows: list[store.Row] = []
    bodies: list[store.Row] = []
    tags: list[store.Row] = []
    entries: list[store.Row] = []
    size = 0
    for m in messages:
        *columns, mime, names = msgspec.structs.astuple(m)
        rows.append(columns)
        bodies.append((m.account_id, m.id, mime))
        size += len(mime)
        if names:
            tags += [(m.account_id, tag, m.id) for tag in names]
        if m.metadata is not None:
            entries += [(m.account_id, f"{key}:{value}", m.id) for key, value in _METADATA.decode(m.metadata).items()]
    await tx.execute_later("messages.insert", rows)
    if size <= MAX_INSERTED_BYTES:
        await tx.execute_later("messages.insert_bodies", bodies)
    else:
        await tx.add_rows("bodies", ("account_id", "message_id", "mime"), bodies)
    if tags:
        await tx.execute_later("messages.insert_tags", tags)
    if entries:
        await tx.execute_later("messages.insert_metadata", entries)


@queries.row("messages.by_id", Message)
async def by_id(tx: store.Transaction, account_id: str, message_id: str) -> Message | None: ...


async def uncharged(tx: store.Transaction, keys: Iterable[tuple[str, str]]) -> dict[tuple[str, str], bool]:
    """Those of these messages, by account and id, that cost no credits; and whether they are test messages."""
    rows = await tx.fetch_many("messages.uncharged", sorted(set(keys)))
    return {(account_id, message_id): bool(is_test) for account_id, message_id, is_test in rows}


@queries.row("messages.account_of", str)
async def account_of(tx: store.Transaction, message_id: str) -> str | None: ...


async def response(tx: store.Transaction, account_id: str, message_id: str) -> tuple[bytes, str] | None:
    """The body of the 202 response to a message as it was sent, and its request id."""
    row = await tx.fetch_one("messages.response", account_id, message_id)
    return (bytes(row[0]), str(row[1])) if row else None


@queries.row("messages.body", bytes)
async def body(tx: store.Transaction, account_id: str, message_id: str) -> bytes | None: ...


async def outgoing(tx: store.Transaction, messages: Sequence[tuple[str, str]]) -> list[Outgoing]:
    """What is sent of messages, given by account and id, as far as they have a body."""
    return [Outgoing(*row) for row in await tx.fetch_many("messages.outgoing", messages) if row[4] is not None]


async def event_details(
    tx: store.Transaction, recipients: Sequence[tuple[str, str, str]]
) -> dict[tuple[str, str, str], EventDetails]:
    """The event details of recipients, given by account, message and id."""
    rows = await tx.fetch_many("messages.event_details", recipients)
    return {(row[0], row[1], row[2]): EventDetails(*row[3:]) for row in rows}


async def event_context(
    tx: store.Transaction, recipients: Sequence[tuple[str, str, str]]
) -> dict[tuple[str, str, str], EventContext]:
    """What events of version 2 contain besides, of recipients given by account, message and id."""
    rows = await tx.fetch_many("messages.event_context", recipients)
    return {(row[0], row[1], row[2]): EventContext(*row[3:]) for row in rows}


async def heads(tx: store.Transaction, messages: Iterable[tuple[str, str]]) -> dict[tuple[str, str], bytes]:
    """The beginning of the MIME of messages, given by account and id, as far as it is retained."""
    rows = await tx.fetch_many("messages.heads", sorted(set(messages)))
    return {(row[0], row[1]): bytes(row[2]) for row in rows}


async def tags(tx: store.Transaction, messages: Iterable[tuple[str, str]]) -> dict[tuple[str, str], set[str]]:
    """The tags of messages, given by account and id; those without tags are absent."""
    found: dict[tuple[str, str], set[str]] = {}
    for account_id, message_id, tag in await tx.fetch_many("messages.tags", sorted(set(messages))):
        found.setdefault((account_id, message_id), set()).add(tag)
    return found


async def metadata(tx: store.Transaction, account_id: str, message_ids: Iterable[str]) -> dict[str, str]:
    """The metadata of messages of an account, as JSON, by message id; those without any are absent."""
    rows = await tx.fetch_many("messages.metadata", [(account_id, message_id) for message_id in message_ids])
    return {row[0]: row[1] for row in rows}


@queries.change("messages.reschedule")
async def reschedule(
    tx: store.Transaction, account_id: str, message_id: str, *, send_at: int, expires_at: int | None
) -> None: ...
@queries.change("messages.replace_body")
async def replace_body(tx: store.Transaction, account_id: str, message_id: str, mime: bytes) -> None: ...


async def finish(tx: store.Transaction, rows: Sequence[tuple[str, str, str, str, int]]) -> None:
    """Store the end of messages whose recipients are all final: account, id, status, billing, and time."""
    await tx.execute_later("messages.finish", rows)


async def test_bytes_by_account(tx: store.Transaction, *, recipient_bytes: int) -> dict[str, int]:
    """What the test messages of each account take, as far as they are not deleted; reads an index entry for each."""
    rows = await tx.fetch("messages.test_bytes_by_account", recipient_bytes)
    return {str(account_id): int(size) for account_id, size in rows}


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
    # Why it has ended without an attempt, where that is not the suppression list.
    cause: str | None = None


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
    cause: str | None = None


class Tally(msgspec.Struct, frozen=True):
    """Counts of the recipients of one message."""

    account_id: str
    message_id: str
    recipients: int
    delivered: int
    reserved: int
    released: int


async def insert_recipients(tx: store.Transaction, recipients: Sequence[NewRecipient]) -> None:
    rows = [msgspec.structs.astuple(recipient) for recipient in recipients]
    await tx.execute_later("recipients.insert", rows)


@queries.rows("recipients.of_message", Recipient)
async def recipients(tx: store.Transaction, account_id: str, message_id: str) -> list[Recipient]: ...


async def leading_recipients(
    tx: store.Transaction, account_id: str, message_ids: Sequence[str]
) -> dict[str, LeadingRecipient]:
    """The recipient of each message that says most about it, failures first, by the message."""
    rows = await tx.fetch_many(
        "recipients.leading_of_message", [(account_id, message_id) for message_id in message_ids]
    )
    return {row[0]: LeadingRecipient(*row[1:]) for row in rows}


@queries.rows("recipients.of_address", Sent)
async def sent_to(tx: store.Transaction, account_id: str, email_key: str, *, limit: int) -> list[Sent]: ...
@queries.row("recipients.first_of_address", int)
async def first_sent_at(tx: store.Transaction, account_id: str, email_key: str) -> int | None: ...


async def recipient_results(
    tx: store.Transaction, account_id: str, message_ids: Sequence[str]
) -> dict[str, list[RecipientResult]]:
    """The recipients of messages, in the order of the request, by the message."""
    found: dict[str, list[RecipientResult]] = {}
    for row in await tx.fetch_many(
        "recipients.results_of_message", [(account_id, message_id) for message_id in message_ids]
    ):
        found.setdefault(row[0], []).append(RecipientResult(*row))
    return found


async def record_results(tx: store.Transaction, updates: Sequence[RecipientUpdate]) -> set[tuple[str, str, str]]:
    """Update recipients; those that are final already are neither changed nor returned."""
    rows = await tx.fetch_many("recipients.record", [msgspec.structs.astuple(update) for update in updates])
    return {(account_id, message_id, recipient_id) for account_id, message_id, recipient_id in rows}


async def tallies(tx: store.Transaction, messages: Sequence[tuple[str, str]]) -> list[Tally]:
    """The counts of messages, given by account and id."""
    return [Tally(*row) for row in await tx.fetch_many("recipients.tally", messages)]


IdempotencyPair = tuple[str, str]


class NewIdempotencyKey(msgspec.Struct, frozen=True):
    """A key of an accepted message, or of the first one of a batch, with the response to the batch."""

    credential_id: str
    key: str
    account_id: str
    body_hash: bytes
    message_id: str
    expires_at: int
    response: bytes | None = None


class StoredIdempotencyKey(msgspec.Struct, frozen=True):
    """A used key: the hash of the request body, the message that it created, and the response if it was a batch."""

    body_hash: bytes
    message_id: str
    response: bytes | None = None


async def idempotency_keys(
    tx: store.Transaction, pairs: Iterable[IdempotencyPair], *, now: int
) -> Mapping[IdempotencyPair, StoredIdempotencyKey]:
    """The keys among these (credential, key) pairs that are still valid."""
    rows = await tx.fetch_many("idempotency.find", [(*scope, now) for scope in pairs])
    return {(row[0], row[1]): StoredIdempotencyKey(bytes(row[2]), row[3], row[4]) for row in rows}


async def insert_idempotency_keys(tx: store.Transaction, keys: Sequence[NewIdempotencyKey]) -> None:
    await tx.execute_later("idempotency.insert", [msgspec.structs.astuple(key) for key in keys])


# Delete up to SWEEP_ROWS expired keys; returns how many.
@queries.changes("idempotency.sweep")
async def sweep_idempotency_keys(tx: store.Transaction, *, now: int, limit: int = store.SWEEP_ROWS) -> int: ...
@queries.change("resends.insert")
async def insert_resend(tx: store.Transaction, account_id: str, *, resend_of: str, message_id: str) -> None: ...
@queries.rows("resends.of_message", str)
async def resends(tx: store.Transaction, account_id: str, message_id: str, *, limit: int) -> list[str]: ...


async def resends_of_messages(tx: store.Transaction, account_id: str, message_ids: Sequence[str]) -> set[str]:
    """Which of these messages were sent again."""
    rows = await tx.fetch_many("resends.of_messages", [(account_id, message_id) for message_id in message_ids])
    return {str(row[0]) for row in rows}
