"""Who has left which list of an account: mail of that list is not sent to them. The first time is kept."""

from collections.abc import Sequence
from enum import StrEnum

import msgspec

from postroad.storage.engine import queries, store

# The account, the list, and the address as a key.
UnsubscribeKey = tuple[str, str, str]


class Source(StrEnum):
    """How a recipient left a list: by the button of their mail program, on the page, or through the account."""

    ONE_CLICK = "one_click"
    PAGE = "page"
    ACCOUNT = "account"
    IMPORT = "import"


class Unsubscribe(msgspec.Struct, frozen=True):
    """A row of `unsubscribes`. `message_id` is the message whose link was used."""

    account_id: str
    list_name: str
    email_key: str
    source: str
    message_id: str | None
    created_at: int

    @property
    def key(self) -> UnsubscribeKey:
        return self.account_id, self.list_name, self.email_key


async def find(tx: store.Transaction, keys: Sequence[UnsubscribeKey]) -> dict[UnsubscribeKey, Unsubscribe]:
    """Those of these addresses that have left these lists."""
    found = [Unsubscribe(*row) for row in await tx.fetch_many("unsubscribes.find", sorted(set(keys)))]
    return {row.key: row for row in found}


async def add(tx: store.Transaction, rows: Sequence[Unsubscribe]) -> list[UnsubscribeKey]:
    """Add addresses; those that have left their list already are not changed. Returns the new ones."""
    wanted = {row.key: msgspec.structs.astuple(row) for row in rows}
    # The same order everywhere, so that two hosts that add the same addresses do not deadlock.
    added = await tx.fetch_many("unsubscribes.add", [wanted[key] for key in sorted(wanted)])
    return [(row[0], row[1], row[2]) for row in added]


# Remove an address from a list; False when it had not left it.
@queries.changed("unsubscribes.remove")
async def remove(tx: store.Transaction, account_id: str, list_name: str, email_key: str) -> bool: ...
# Who has left the lists of an account, by list and address, after one of them.
@queries.rows("unsubscribes.of_account", Unsubscribe)
async def of_account(
    tx: store.Transaction, account_id: str, after_list: str, after: str, *, limit: int
) -> list[Unsubscribe]: ...
# Who has left one list, by address.
@queries.rows("unsubscribes.of_list", Unsubscribe)
async def of_list(
    tx: store.Transaction, account_id: str, list_name: str, *, after: str, limit: int, source: str | None = None
) -> list[Unsubscribe]: ...
# The lists that somebody has left, in order.
@queries.rows("unsubscribes.lists", str)
async def lists(tx: store.Transaction, account_id: str, *, limit: int) -> list[str]: ...
