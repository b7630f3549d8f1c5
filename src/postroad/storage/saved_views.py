"""Saved views: searches for messages that an account has given a name. Few, so all are read at once."""

import msgspec

from postroad.storage import store


class SavedView(msgspec.Struct, frozen=True):
    """A row of `saved_views`; no two of an account have the same name."""

    id: str
    account_id: str
    name: str
    search: str
    created_at: int


async def of_account(tx: store.Transaction, account_id: str) -> list[SavedView]:
    """The views of an account by name."""
    return [SavedView(*row) for row in await tx.fetch("saved_views.of_account", account_id)]


async def put(tx: store.Transaction, view: SavedView) -> None:
    """Store a view, or another search for the one with this name."""
    await tx.execute("saved_views.put", view.account_id, view.id, view.name, view.search, view.created_at)


async def rename(tx: store.Transaction, account_id: str, view_id: str, name: str) -> None:
    """Give a view a name that no other has."""
    await tx.execute("saved_views.rename", account_id, view_id, name)


async def remove(tx: store.Transaction, account_id: str, view_id: str) -> None:
    """Delete a view."""
    await tx.execute("saved_views.remove", account_id, view_id)
