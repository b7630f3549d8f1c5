"""Saved views: searches for messages under a name.

They belong to the account, not to a person: "Bounced at Gmail" means the same for everybody who works on it, and stays
when its author leaves. So saving one is a change like any other, for developers, with an entry in the audit log.
"""

from typing import Final

from postroad import context, errors
from postroad.model.search import search_query
from postroad.model.units import identifiers, labels
from postroad.services import audit_log
from postroad.storage.engine import store
from postroad.storage.mail import message_search
from postroad.storage.people import accounts

# They are a bar above the list.
MAX_VIEWS: Final = 30
NAME_CHARACTERS: Final = 40


async def save(ctx: context.Context, account_id: str, *, name: str, search: str) -> message_search.SavedView:
    """Save a search under a name. A name that is in use gets the new search."""
    name, search, now = _checked_name(name), search.strip(), ctx.clock()
    if not search:
        raise errors.InvalidRequest("search: enter a search to save")
    search_query.parse(search)
    view = message_search.SavedView(ctx.new_id(identifiers.SAVED_VIEW, now=now), account_id, name, search, now)
    async with ctx.store.transaction() as tx:
        await accounts.lock(tx, [account_id])
        others = await message_search.saved_views(tx, account_id)
        if len(others) >= MAX_VIEWS and name not in {other.name for other in others}:
            raise errors.Conflict(f"an account has at most {MAX_VIEWS} saved views; remove one that you do not need")
        await message_search.put_view(tx, view)
        await audit_log.write(ctx, tx, account_id, "view.saved", name, search)
    return view


async def rename(ctx: context.Context, account_id: str, view_id: str, name: str) -> str:
    """Give a view another name; returns it."""
    name = _checked_name(name)
    async with ctx.store.transaction() as tx:
        await accounts.lock(tx, [account_id])
        view = await _find(tx, account_id, view_id)
        if name != view.name and name in {
            saved_view.name for saved_view in await message_search.saved_views(tx, account_id)
        }:
            raise errors.Conflict(f"name: another view is called {name}; choose another name or remove that view")
        await message_search.rename_view(tx, account_id, view_id, name)
        await audit_log.write(ctx, tx, account_id, "view.renamed", view.name, name)
    return name


async def remove(ctx: context.Context, account_id: str, view_id: str) -> message_search.SavedView:
    """Remove a view; returns it."""
    async with ctx.store.transaction() as tx:
        await accounts.lock(tx, [account_id])
        view = await _find(tx, account_id, view_id)
        await message_search.remove_view(tx, account_id, view_id)
        await audit_log.write(ctx, tx, account_id, "view.removed", view.name)
    return view


async def _find(tx: store.Transaction, account_id: str, view_id: str) -> message_search.SavedView:
    for view in await message_search.saved_views(tx, account_id):
        if view.id == view_id:
            return view
    raise errors.NotFound("no such saved view in this account")


def _checked_name(name: str) -> str:
    return labels.check_label("name", name.strip(), limit=NAME_CHARACTERS)
