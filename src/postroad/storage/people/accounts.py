"""Accounts, their two balances, the ledger that explains every change of a balance, and usage for bills."""

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType
from typing import Any

import msgspec

from postroad.model.delivery import throttle
from postroad.storage.engine import queries, store

ACTIVE = "active"
SUSPENDED = "suspended"
# Who suspended an account.
OPERATOR = "operator"
BOUNCE_GUARD = "bounce_guard"
# Credits are low when there are fewer than were used in this time: mail will soon be refused.
LOW_CREDIT_HOURS = 72


class Account(msgspec.Struct, frozen=True):
    """A row of `accounts`."""

    id: str
    name: str
    status: str
    suspended_reason: str | None
    available: int
    reserved: int
    created_at: int
    suspended_by: str | None = None
    suspended_at: int | None = None
    closed_at: int | None = None
    removed_at: int | None = None
    # Whether it sends without credits, and whether it has mail that was not charged.
    unlimited: int = 0
    has_uncharged: int = 0
    # The event types that its webhook endpoints name, separated by spaces.
    subscribed_events: str = ""
    # Limits that an operator set: sends per second (None: the setting), and recipients per day.
    request_rate: int | None = None
    recipients_per_day: int | None = None
    # Since when its users need a second factor.
    second_factor_since: int | None = None
    # Its sends: when the bucket is full again, and the latest time that a host has seen.
    rate_full_at: int = 0
    rate_seen_at: int = 0

    @property
    def bucket(self) -> throttle.SharedBucket:
        """The bucket of its sends, exact under the lock."""
        return throttle.SharedBucket(self.rate_full_at, self.rate_seen_at)

    @property
    def state(self) -> str:
        """The status for operators: `active`, `suspended` or `closed`."""
        return self.status if self.closed_at is None else "closed"

    def names_event(self, event_type: str) -> bool:
        """Whether one of its endpoints names an event type, enabled or not."""
        return event_type in self.subscribed_events.split()


def name_key(name: str) -> str:
    """The name as it is compared: two names that differ only in case, form, spaces or what is not seen are the same."""
    form = unicodedata.normalize("NFKC", name).casefold()
    return " ".join("".join(letter for letter in form if unicodedata.category(letter) != "Cf").split())


async def insert(tx: store.Transaction, account_id: str, *, name: str, now: int) -> None:
    """Create an account without credits."""
    await tx.execute("accounts.insert", account_id, name, name_key(name), now)


@queries.row("accounts.by_id", Account)
async def by_id(tx: store.Transaction, account_id: str) -> Account | None: ...


async def by_name(tx: store.Transaction, name: str) -> Account | None:
    """The account of this name, in this or another case."""
    row = await tx.fetch_one("accounts.by_name", name_key(name))
    return None if row is None else Account(*row)


@queries.rows("accounts.page", Account)
async def page(tx: store.Transaction, *, after: str, limit: int) -> list[Account]: ...
@queries.rows("accounts.search", Account)
async def search(
    tx: store.Transaction, *, after: str, limit: int, pattern: str, exact: str, state: str
) -> list[Account]: ...
# Stop an account from sending, by `OPERATOR` or `BOUNCE_GUARD`; False when there is no such account.
@queries.changed("accounts.suspend")
async def suspend(tx: store.Transaction, account_id: str, *, reason: str, by: str, now: int) -> bool: ...
# Let an account send again; False when there is no such account.
@queries.changed("accounts.resume")
async def resume(tx: store.Transaction, account_id: str) -> bool: ...
@queries.rows("accounts.cooled_down", str)
async def cooled_down(tx: store.Transaction, *, suspended_until: int, limit: int) -> list[str]: ...


async def lock(tx: store.Transaction, account_ids: Iterable[str]) -> Mapping[str, Account]:
    """The accounts by id, locked until the transaction ends."""
    rows = await tx.fetch_many("accounts.lock", [(account_id,) for account_id in sorted(set(account_ids))])
    return {row[0]: Account(*row) for row in rows}


async def rename(tx: store.Transaction, account_id: str, name: str) -> None:
    await tx.execute("accounts.rename", account_id, name, name_key(name))


# Close an account; the reason is part of the error that a sender sees.
@queries.change("accounts.close")
async def close(tx: store.Transaction, account_id: str, *, reason: str, now: int) -> None: ...
@queries.change("accounts.reopen")
async def reopen(tx: store.Transaction, account_id: str) -> None: ...


async def set_unlimited(tx: store.Transaction, account_id: str, *, unlimited: bool) -> None:
    """Let an account send without credits, or not."""
    await tx.execute("accounts.set_unlimited", account_id, int(unlimited))


# Set the limits of an account; None for those of the settings.
@queries.change("accounts.set_limits")
async def set_limits(
    tx: store.Transaction, account_id: str, *, request_rate: int | None, recipients_per_day: int | None
) -> None: ...
# Require a second factor of the users of an account; None to require none.
@queries.change("accounts.set_second_factor")
async def require_second_factor(tx: store.Transaction, account_id: str, *, since: int | None) -> None: ...
@queries.change("accounts.note_uncharged")
async def note_uncharged(tx: store.Transaction, account_id: str) -> None: ...
@queries.exists("accounts.uses_approvals")
async def uses_approvals(tx: store.Transaction, account_id: str, *, after: int) -> bool: ...
@queries.count("accounts.low_credit_count")
async def low_credit_count(tx: store.Transaction, *, since_hour: int) -> int: ...


async def low_on_credits(tx: store.Transaction, *, since_hour: int, limit: int) -> list[tuple[str, int, int]]:
    """These accounts, with the credits they have and those they used."""
    found = await tx.fetch("accounts.low_on_credits", since_hour, limit)
    return [(str(account_id), int(available), int(used)) for account_id, available, used in found]


# The ledger: every change of a balance, with its reason.
#
# The entries of an account always sum to its balances. `record` is the only function that moves credits, and it writes
# entry and balance together. `postroad verify` checks this for the whole database.


class LedgerKind(StrEnum):
    """The reason of an entry."""

    GRANT = "grant"
    RESERVE = "reserve"
    SETTLE = "settle"
    RELEASE = "release"


class LedgerEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A row of `ledger`: what was added to the available and to the reserved credits."""

    id: str
    account_id: str
    kind: str
    available: int
    reserved: int
    message_id: str | None = None
    note: str | None = None
    created_at: int


async def record_entries(
    tx: store.Transaction,
    entries: Sequence[LedgerEntry],
    *,
    buckets: Mapping[str, throttle.SharedBucket] = MappingProxyType({}),
) -> None:
    """Write entries and balances together; and changed buckets with them, so that an account is written once."""
    moves: dict[str, list[Any]] = {
        account_id: [account_id, 0, 0, bucket.full_at, bucket.seen_at] for account_id, bucket in buckets.items()
    }
    for entry in entries:
        move = moves.get(entry.account_id)
        if move is None:
            move = moves[entry.account_id] = [entry.account_id, 0, 0, None, None]
        move[1] += entry.available
        move[2] += entry.reserved
    if entries:
        await tx.execute_later("ledger.insert", [msgspec.structs.astuple(entry) for entry in entries])
    if moves:
        await tx.execute_later("accounts.move_credits", sorted(moves.values()))


async def entries_from(tx: store.Transaction, account_id: str, *, after: str, limit: int) -> list[LedgerEntry]:
    """An account's entries, oldest first."""
    return _entries(await tx.fetch("ledger.page_from", account_id, after, limit))


async def entries(tx: store.Transaction, account_id: str, *, before: str, limit: int) -> list[LedgerEntry]:
    """An account's entries, newest first."""
    return _entries(await tx.fetch("ledger.page", account_id, before, limit))


def _entries(rows: Sequence[store.Row]) -> list[LedgerEntry]:
    return [LedgerEntry(**dict(zip(LedgerEntry.__struct_fields__, row, strict=True))) for row in rows]


class TagUsage(msgspec.Struct, frozen=True):
    """Messages and recipients with a tag."""

    tag: str
    messages: int
    recipients: int


async def moved_since(tx: store.Transaction, account_id: str, *, cursor: str, limit: int) -> int | None:
    """What the ledger's entries from a cursor on have added to the available credits; None if they are too many."""
    counted, moved = await tx.fetch_one("usage.moved_since", account_id, cursor, limit) or (0, 0)
    return moved if counted < limit else None


class Moved(msgspec.Struct, frozen=True):
    """What entries of a quarter of an hour did to the available credits; quarters are counted since 1970."""

    quarter: int
    entries: int
    added: int
    used: int
    refunded: int


@queries.rows("usage.moved_by_quarter_hour", Moved)
async def moved_by_quarter_hour(tx: store.Transaction, account_id: str, *, before: str, limit: int) -> list[Moved]: ...


async def billing(tx: store.Transaction, account_id: str, message_ids: Iterable[str]) -> Mapping[str, str]:
    """The billing status of messages, as far as they still exist."""
    wanted = [(account_id, message_id) for message_id in sorted(set(message_ids))]
    rows = await tx.fetch_many("usage.billing", wanted) if wanted else []
    return {row[0]: row[1] for row in rows}


async def usage_floor(tx: store.Transaction, account_id: str, *, after: str, examined: int) -> str | None:
    """The id of the last of so many messages; None if there are fewer."""
    row = await tx.fetch_one("usage.floor", account_id, after, examined - 1)
    return row[0] if row else None


@queries.rows("usage.by_tag", TagUsage)
async def usage_by_tag(tx: store.Transaction, account_id: str, *, after: str, limit: int) -> list[TagUsage]: ...
