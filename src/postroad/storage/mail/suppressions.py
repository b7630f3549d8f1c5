"""The suppression list of an account: addresses that its mail is not sent to. The first reason is kept.

An address is identified by its key, which ignores case. Those that have left a list, whose mail alone is not sent to
them, have the name of that list, and a table of their own, `unsubscribes`.
"""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Final

import msgspec

from postroad.storage.engine import queries, store

# The lists that pages name.
MAX_LISTS: Final = 100
# The account, and the address as a key.
SuppressionKey = tuple[str, str]
# The same, with the list in between.
ListKey = tuple[str, str, str]


class Source(StrEnum):
    """Why an address is on the list."""

    BOUNCE = "bounce"
    LATE_BOUNCE = "late_bounce"
    COMPLAINT = "complaint"
    OPERATOR = "operator"
    ACCOUNT = "account"
    IMPORT = "import"


class ListSource(StrEnum):
    """How a recipient has left a list: by the button of their mail program, or on our page."""

    ONE_CLICK = "one_click"
    PAGE = "page"


class Suppression(msgspec.Struct, frozen=True):
    """A row of `suppressions`. `reason` and `smtp_code` hold the reply that caused it, and `message_id` its message."""

    account_id: str
    email_key: str
    source: str
    reason: str
    smtp_code: int | None
    message_id: str | None
    created_at: int
    # Empty: all mail of the account.
    list_name: str = ""

    @property
    def key(self) -> ListKey:
        return self.account_id, self.list_name, self.email_key


async def find(tx: store.Transaction, pairs: Sequence[SuppressionKey]) -> dict[SuppressionKey, Suppression]:
    """Those among these (account, email key) pairs that are on the list."""
    rows = await tx.fetch_many("suppressions.find", pairs)
    return {(row[0], row[1]): Suppression(*row) for row in rows}


async def find_left(tx: store.Transaction, keys: Sequence[ListKey]) -> dict[ListKey, Suppression]:
    """Those among these that have left their list."""
    rows = [Suppression(*row) for row in await tx.fetch_many("unsubscribes.find", sorted(set(keys)))]
    return {row.key: row for row in rows}


async def get(tx: store.Transaction, account_id: str, email_key: str, list_name: str = "") -> Suppression | None:
    """One address of a list, or of the suppression list."""
    if list_name:
        return next(iter((await find_left(tx, [(account_id, list_name, email_key)])).values()), None)
    return (await find(tx, [(account_id, email_key)])).get((account_id, email_key))


async def add(tx: store.Transaction, suppressions: Iterable[Suppression]) -> list[SuppressionKey]:
    """Add addresses; those that are on the list already are not changed. Returns the new ones."""
    wanted = {each.key: each for each in suppressions}
    # The same order everywhere, so that two hosts that add the same addresses do not deadlock.
    rows = [wanted[key] for key in sorted(wanted)]
    added: list[store.Row] = []
    if of_all := [msgspec.structs.astuple(row)[:-1] for row in rows if not row.list_name]:
        added += await tx.fetch_many("suppressions.add", of_all)
    if of_lists := [(*row.key, row.source, row.message_id, row.created_at) for row in rows if row.list_name]:
        added += await tx.fetch_many("unsubscribes.add", of_lists)
    return [(row[0], row[1]) for row in added]


async def remove(tx: store.Transaction, account_id: str, email_key: str, list_name: str = "") -> bool:
    """Remove an address; False when it was not on the list."""
    if list_name:
        return await tx.execute("unsubscribes.remove", account_id, list_name, email_key) > 0
    return await tx.execute("suppressions.remove", account_id, email_key) > 0


# An account's list, ordered by address, after the address `after`.
@queries.rows("suppressions.of_account", Suppression)
async def of_account(
    tx: store.Transaction, account_id: str, *, after: str, limit: int, source: str | None = None
) -> list[Suppression]: ...
@queries.count("suppressions.count")
async def count(tx: store.Transaction, account_id: str) -> int: ...
# Who has left one list, by address; who has left any, by list and address; the lists that somebody has left.
@queries.rows("unsubscribes.of_list", Suppression)
async def of_list(
    tx: store.Transaction, account_id: str, list_name: str, *, after: str, limit: int, source: str | None = None
) -> list[Suppression]: ...
@queries.rows("unsubscribes.of_account", Suppression)
async def of_lists(
    tx: store.Transaction, account_id: str, after_list: str, after: str, *, limit: int
) -> list[Suppression]: ...
@queries.rows("unsubscribes.lists", str)
async def lists(tx: store.Transaction, account_id: str, *, limit: int) -> list[str]: ...
