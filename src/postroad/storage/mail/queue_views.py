"""The queue as operators see it: its recipients, counts, and the changes that an operator can make.

Reads may scan the whole queue, so they belong in `scanning`. Recipients under a lease are never changed: a worker is
sending to them.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from postroad.storage.engine import queries, store
from postroad.storage.mail import queue

READY: Final = "ready"
WAITING: Final = "waiting"
SCHEDULED: Final = "scheduled"
SENDING: Final = "sending"
HELD: Final = "held"
STATES: Final = (READY, WAITING, SCHEDULED, SENDING, HELD)


class Filter(msgspec.Struct, frozen=True, kw_only=True):
    """Which recipients; None matches all."""

    account_id: str | None = None
    message_id: str | None = None
    recipient_id: str | None = None
    domain: str | None = None


class QueuedRecipient(msgspec.Struct, frozen=True):
    """A recipient in the queue; `attempt_count` is the number of all attempts.

    The last three are those of its last attempt; `provider_queue` is empty when no route was found.
    """

    account_id: str
    message_id: str
    recipient_id: str
    queue_key: str
    email: str
    attempt_count: int
    lost_leases: int
    state: str
    queued_at: int
    due_at: int
    worker: str | None
    last_smtp_code: int | None
    last_smtp_response: str | None
    provider_queue: str | None
    enhanced_code: str | None
    attempt_reason: str | None


class Count(msgspec.Struct, frozen=True):
    """How many recipients are in a state, when the first was queued, and when the first is due."""

    state: str
    recipients: int
    queued_at: int
    due_at: int


class UnleasedRecipient(msgspec.Struct, frozen=True):
    """A recipient without a lease."""

    account_id: str
    message_id: str
    recipient_id: str
    email_key: str

    @property
    def key(self) -> queue.Key:
        return self.account_id, self.message_id, self.recipient_id


async def page(tx: store.Transaction, chosen: Filter, *, state: str | None, limit: int) -> list[QueuedRecipient]:
    """The oldest recipients."""
    rows = await tx.fetch("queue_views.page", *msgspec.structs.astuple(chosen), state, limit)
    return [QueuedRecipient(*row) for row in rows]


# The recipients of one message of an account: a lookup by key, however long the queue is.
@queries.rows("queue_views.of_message", QueuedRecipient)
async def of_message(tx: store.Transaction, account_id: str, message_id: str) -> list[QueuedRecipient]: ...
# The oldest recipient of an account: one index lookup, however long the queue is.
@queries.row("queue_views.first", QueuedRecipient)
async def first(tx: store.Transaction, account_id: str) -> QueuedRecipient | None: ...
# How many recipients an account has, counted up to `limit`.
@queries.count("queue_views.count")
async def count(tx: store.Transaction, account_id: str, *, limit: int) -> int: ...


async def ahead(tx: store.Transaction, account_id: str, message_id: str, *, limit: int) -> dict[str, int]:
    """How many ready recipients precede a message in each of its scheduled queues; counts up to `limit`."""
    rows = await tx.fetch("queue_views.ahead", account_id, message_id, limit)
    return {row[0]: row[1] for row in rows}


async def counts(tx: store.Transaction, chosen: Filter) -> dict[str, Count]:
    rows = await tx.fetch("queue_views.counts", *msgspec.structs.astuple(chosen))
    return {row[0]: Count(*row) for row in rows}


async def domains(tx: store.Transaction, chosen: Filter, *, limit: int) -> list[tuple[str, int]]:
    """The domains with the most recipients, and their number."""
    rows = await tx.fetch("queue_views.domains", *msgspec.structs.astuple(chosen), limit)
    return [(domain, count) for domain, count in rows]


async def accounts(tx: store.Transaction, chosen: Filter) -> list[str]:
    return [str(row[0]) for row in await tx.fetch("queue_views.accounts", *msgspec.structs.astuple(chosen))]


async def make_ready(tx: store.Transaction, chosen: Filter, *, now: int, limit: int) -> int:
    """Make up to `limit` waiting recipients of an account ready and keep their place in the retry schedule.

    The filter names the account. Returns how many were made ready.
    """
    return await tx.execute("queue_views.make_ready", *msgspec.structs.astuple(chosen), now, limit)


async def make_named_ready(tx: store.Transaction, keys: Sequence[queue.Key], *, now: int) -> int:
    """The same for the given keys, as far as they are waiting."""
    return len(await tx.fetch_many("queue_views.make_named_ready", [(*key, now) for key in keys]))


async def unleased(tx: store.Transaction, chosen: Filter, *, limit: int) -> list[UnleasedRecipient]:
    """Up to `limit` recipients without a lease."""
    return [
        UnleasedRecipient(*row)
        for row in await tx.fetch("queue_views.unleased", *msgspec.structs.astuple(chosen), limit)
    ]


async def still_unleased(tx: store.Transaction, keys: Sequence[queue.Key]) -> list[UnleasedRecipient]:
    """Those without a lease, locked until the transaction ends."""
    return [UnleasedRecipient(*row) for row in await tx.fetch_many("queue_views.still_unleased", keys)]


@queries.rows("queue_views.unattempted", UnleasedRecipient)
async def unattempted(tx: store.Transaction, account_id: str, message_id: str) -> list[UnleasedRecipient]: ...


async def reschedule(
    tx: store.Transaction, account_id: str, message_id: str, *, send_at: int, expires_at: int | None, now: int
) -> None:
    """Move all recipients of a message, which must be locked, to another time."""
    due_at = max(now, send_at)
    await tx.execute("queue_views.reschedule", account_id, message_id, due_at, int(due_at == now), expires_at)


async def locate(
    tx: store.Transaction, recipient_id: str, *, from_message: str, to_message: str
) -> tuple[str, str] | None:
    """The account and message of a recipient; the message's id lies between the two bounds."""
    row = await tx.fetch_one("queue_views.locate", recipient_id, from_message, to_message)
    return (str(row[0]), str(row[1])) if row else None


# The queue over all accounts, read in steps of a bounded number of rows, and its totals, which read all of it.
#
# A queue may have millions of rows and no index for every way of choosing them. A walk goes along the primary key: each
# step examines so many rows, and says where the next one begins.

WALK_START: Final[queue.Key] = ("", "", "")
# Sorts after every account id.
_LAST: Final = "~"


class Selection(msgspec.Struct, frozen=True):
    """Which recipients: of an account and at a domain; empty selects all."""

    account_id: str = ""
    domain: str = ""


class Total(msgspec.Struct, frozen=True):
    """How many recipients are in a state and of an age, when the first was queued, and when the first is due."""

    state: str
    age: int
    recipients: int
    queued_at: int
    due_at: int


class AccountTotal(msgspec.Struct, frozen=True):
    """How many recipients an account has, and when the first was queued."""

    account_id: str
    recipients: int
    queued_at: int


class ReasonTotal(msgspec.Struct, frozen=True):
    """How many recipients wait after an attempt in a provider queue with a reason."""

    provider_queue: str
    reason: str
    recipients: int


async def totals(tx: store.Transaction, queued_after: Sequence[int]) -> list[Total]:
    """The totals by state and age: the number of the given five times, newest first, that a recipient is older than."""
    return [Total(*row) for row in await tx.fetch("queue_views.totals", *queued_after)]


@queries.rows("queue_views.largest_accounts", AccountTotal)
async def largest_accounts(tx: store.Transaction, *, limit: int) -> list[AccountTotal]: ...
@queries.rows("queue_views.due_reasons", ReasonTotal)
async def due_reasons(tx: store.Transaction, *, examined: int) -> list[ReasonTotal]: ...


async def walk_step(
    tx: store.Transaction, chosen: Selection, *, after: queue.Key, examined: int, only_waiting: bool
) -> tuple[list[UnleasedRecipient], queue.Key | None]:
    """The chosen ones of the next rows that have no lease, and where the next step begins; None at the end.

    Those `only_waiting` are those that a retry would change.
    """
    place = _place(chosen, after)
    rows = await tx.fetch("queue_views.walk", *place, examined, chosen.domain, int(only_waiting))
    end = await tx.fetch_one("queue_views.walk_end", *place, examined - 1)
    return [UnleasedRecipient(*row) for row in rows], _key(end)


async def walk_page(
    tx: store.Transaction, chosen: Selection, *, state: str, after: queue.Key, examined: int, limit: int
) -> tuple[list[QueuedRecipient], queue.Key | None]:
    """The same for people: all that are chosen, up to a limit."""
    place = _place(chosen, after)
    rows = await tx.fetch("queue_views.walk_page", *place, examined, chosen.domain, state, limit)
    found = [QueuedRecipient(*row) for row in rows]
    if len(found) == limit:
        last = found[-1]
        return found, (last.account_id, last.message_id, last.recipient_id)
    return found, _key(await tx.fetch_one("queue_views.walk_end", *place, examined - 1))


def _place(chosen: Selection, after: queue.Key) -> tuple[str, str, str, str]:
    # Everything of an account comes after its id alone.
    return (*max(after, (chosen.account_id, "", "")), chosen.account_id or _LAST)


def _key(row: store.Row | None) -> queue.Key | None:
    return None if row is None else (row[0], row[1], row[2])
