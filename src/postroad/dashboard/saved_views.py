"""The views above the list of messages: searches with a name, built in or saved by the account."""

from collections.abc import Sequence
from typing import Final

import msgspec

from postroad.dashboard import forms, requests, urls
from postroad.services.messages import hidden_content, saved_views
from postroad.storage import saved_views as stored
from postroad.web import routing

# What most people look for first.
BUILT_IN: Final = (
    ("All messages", ""),
    ("Bounced", "status:bounced"),
    ("Deferred", "status:deferred"),
    ("Queued", "status:queued"),
    ("Last hour", "after:1h"),
)


class Chip(msgspec.Struct, frozen=True):
    """A view as a link."""

    name: str
    path: str
    is_current: bool


class Saving(forms.Form, frozen=True, kw_only=True):
    """A search and its name."""

    name: str
    search: str


class Renaming(forms.Form, frozen=True, kw_only=True):
    """Another name."""

    name: str


async def visible(request: requests.PageRequest) -> list[stored.SavedView]:
    """The views of the account that the user can open: those that search hidden content are left out."""
    views = await saved_views.of_account(request.ctx, request.account_id)
    return [one for one in views if not request.hides_content or hidden_content.can_search(one.search)]


def chips(saved: Sequence[stored.SavedView], text: str) -> list[Chip]:
    """The built-in views and those of the account, for the page of the search `text`."""
    views = [*BUILT_IN, *((one.name, one.search) for one in saved)]
    return [Chip(name, urls.messages(search), search == text) for name, search in views]


async def save(request: requests.PageRequest) -> routing.Response:
    """Save a search."""
    form: Saving = request.form
    view = await saved_views.save(request.ctx, request.account_id, name=form.name, search=form.search)
    return request.redirect(urls.messages(view.search), notice=f"View {view.name} saved.")


async def rename(request: requests.PageRequest) -> routing.Response:
    """Rename a view."""
    form: Renaming = request.form
    name = await saved_views.rename(request.ctx, request.account_id, request.path["id"], form.name)
    return request.redirect(urls.MESSAGES, notice=f"View renamed to {name}.")


async def remove(request: requests.PageRequest) -> routing.Response:
    """Remove a view."""
    name = await saved_views.remove(request.ctx, request.account_id, request.path["id"])
    return request.redirect(urls.MESSAGES, notice=f"View {name} removed.")


ROUTES: Final = (
    requests.post("/views", save, form=Saving),
    requests.post("/views/{id}/rename", rename, form=Renaming),
    requests.post("/views/{id}/remove", remove),
)
