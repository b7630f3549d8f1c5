"""`/keys`: the API keys of the account. A key is shown once, on the page that answers its form."""

from typing import Any, Final

import msgspec

from postroad.dashboard import forms, snippets, visits
from postroad.dashboard import site as sites
from postroad.model import caller, cursors, identifiers
from postroad.services import api_keys, context, credentials
from postroad.web import routing

PAGE: Final = 50


class Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which part of the list."""

    after: str | None = None


class NewKey(forms.Form, frozen=True, kw_only=True):
    """A key to make; without a credential it is under the oldest live one."""

    name: str
    credential_id: str | None = None
    may_read: bool | None = None


async def show(visit: visits.Visit) -> routing.Answer:
    """The list, the form, and how to connect an application."""
    after = cursors.after(visit.query.after, identifiers.API_KEY)
    found = await api_keys.of_account(visit.ctx, visit.account_id, after=after, limit=PAGE + 1)
    return await _page(
        visit,
        is_first=not after,
        listed=found[:PAGE],
        following=cursors.following([row.id for row in found], limit=PAGE),
    )


async def create(visit: visits.Visit) -> routing.Answer:
    """Make a key and show it, this once, with code that sends."""
    form: NewKey = visit.form
    read = {caller.Permission.READ} if form.may_read else set()
    made, secret = await api_keys.create(
        visit.ctx,
        visit.account_id,
        credential_id=form.credential_id,
        name=form.name,
        scopes=frozenset({caller.Permission.SEND} | read),
    )
    return await _page(visit, status=201, made=made, secret=secret)


async def revoke(visit: visits.Visit) -> routing.Answer:
    """Stop a key."""
    await api_keys.revoke(visit.ctx, visit.account_id, visit.request.path["id"])
    return visit.go("/keys", notice="The key is revoked. Whatever used it cannot send any more.")


async def _page(visit: visits.Visit, *, status: int = 200, **values: Any) -> routing.Answer:
    where, secret = await snippets.place(visit), values.get("secret")
    known = await credentials.of_account(visit.ctx, visit.account_id)
    empty: dict[str, Any] = {"made": None, "secret": None, "listed": [], "following": None, "is_first": True}
    return visit.page(
        "keys.html",
        status=status,
        **{**empty, **values},
        place=where,
        snippets=snippets.over_http(where) if secret is None else snippets.over_http(where, api_key=secret),
        credentials={credential.id: credential for credential in known},
        live=[credential for credential in known if credential.revoked_at is None],
    )


def routes(site: sites.Site) -> tuple[routing.Route[context.Context], ...]:
    """The page and what can be done on it."""
    return (
        visits.look(site, "/keys", show, query=Part),
        visits.change(site, "/keys", create, form=NewKey),
        visits.change(site, "/keys/{id}/revoke", revoke),
    )
