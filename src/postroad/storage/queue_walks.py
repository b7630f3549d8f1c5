"""The queue over all accounts, read in steps of a bounded number of rows, and its totals, which read all of it.

A queue may have millions of rows and no index for every way of choosing them. A walk goes along the primary key: each
step examines so many rows, and says where the next one begins.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from postroad.storage import queue, queue_views, store

START: Final[queue.Key] = ("", "", "")
# Sorts after every account id.
_LAST: Final = "~"


class Selection(msgspec.Struct, frozen=True):
    """Which recipients: of an account and at a domain; empty selects all."""

    account_id: str = ""
    domain: str = ""


class Total(msgspec.Struct, frozen=True):
    """How many recipients are in a state and of an age, and when the first was queued."""

    state: str
    age: int
    recipients: int
    queued_at: int


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


async def largest_accounts(tx: store.Transaction, *, limit: int) -> list[AccountTotal]:
    """The accounts with the most recipients."""
    return [AccountTotal(*row) for row in await tx.fetch("queue_views.largest_accounts", limit)]


async def due_reasons(tx: store.Transaction, *, examined: int) -> list[ReasonTotal]:
    """Why those of the waiting recipients wait that are due next."""
    return [ReasonTotal(*row) for row in await tx.fetch("queue_views.due_reasons", examined)]


async def step(
    tx: store.Transaction, chosen: Selection, *, after: queue.Key, examined: int, only_waiting: bool
) -> tuple[list[queue_views.UnleasedRecipient], queue.Key | None]:
    """The chosen ones of the next rows that have no lease, and where the next step begins; None at the end.

    Those `only_waiting` are those that a retry would change.
    """
    place = _place(chosen, after)
    rows = await tx.fetch("queue_views.walk", *place, examined, chosen.domain, int(only_waiting))
    end = await tx.fetch_one("queue_views.walk_end", *place, examined - 1)
    return [queue_views.UnleasedRecipient(*row) for row in rows], _key(end)


async def page(
    tx: store.Transaction, chosen: Selection, *, state: str, after: queue.Key, examined: int, limit: int
) -> tuple[list[queue_views.QueuedRecipient], queue.Key | None]:
    """The same for people: all that are chosen, up to a limit."""
    place = _place(chosen, after)
    rows = await tx.fetch("queue_views.walk_page", *place, examined, chosen.domain, state, limit)
    found = [queue_views.QueuedRecipient(*row) for row in rows]
    if len(found) == limit:
        last = found[-1]
        return found, (last.account_id, last.message_id, last.recipient_id)
    return found, _key(await tx.fetch_one("queue_views.walk_end", *place, examined - 1))


def _place(chosen: Selection, after: queue.Key) -> tuple[str, str, str, str]:
    # Everything of an account comes after its id alone.
    return (*max(after, (chosen.account_id, "", "")), chosen.account_id or _LAST)


def _key(row: store.Row | None) -> queue.Key | None:
    return None if row is None else (row[0], row[1], row[2])
