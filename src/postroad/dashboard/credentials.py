"""`/credentials`: the SMTP credentials of the account. A password is shown once, on the page that answers its form."""

from typing import Any, Final

import msgspec

from postroad.dashboard import forms, snippets, visits
from postroad.dashboard import site as sites
from postroad.model import cursors, identifiers
from postroad.services import context, credentials
from postroad.web import routing

PAGE: Final = 50


class Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which part of the list."""

    after: str | None = None


class NewCredential(forms.Form, frozen=True, kw_only=True):
    """A credential to make."""

    name: str


async def show(visit: visits.Visit) -> routing.Answer:
    """The list, the form, and how to connect an application."""
    after = cursors.after(visit.query.after, identifiers.CREDENTIAL)
    found = await credentials.of_account(visit.ctx, visit.account_id, after=after, limit=PAGE + 1)
    return await _page(
        visit,
        is_first=not after,
        listed=found[:PAGE],
        following=cursors.following([row.id for row in found], limit=PAGE),
    )


async def create(visit: visits.Visit) -> routing.Answer:
    """Make a credential and show its password, this once, with everything that an application needs."""
    form: NewCredential = visit.form
    made, password = await credentials.create(visit.ctx, visit.account_id, form.name)
    return await _page(visit, status=201, made=made, password=password)


async def revoke(visit: visits.Visit) -> routing.Answer:
    """Stop a credential."""
    credential = await credentials.find(visit.ctx, visit.account_id, visit.request.path["id"])
    await credentials.revoke(visit.ctx, visit.account_id, credential.id)
    return visit.go("/credentials", notice=f"{credential.name} is revoked, and so are the API keys under it.")


async def _page(visit: visits.Visit, *, status: int = 200, **values: Any) -> routing.Answer:
    where, made = await snippets.place(visit), values.get("made")
    shown = (
        snippets.over_smtp(where)
        if made is None
        else snippets.over_smtp(where, username=made.username, password=values["password"])
    )
    empty: dict[str, Any] = {"made": None, "password": None, "listed": [], "following": None, "is_first": True}
    return visit.page("credentials.html", status=status, **{**empty, **values}, place=where, snippets=shown)


def routes(site: sites.Site) -> tuple[routing.Route[context.Context], ...]:
    """The page and what can be done on it."""
    return (
        visits.look(site, "/credentials", show, query=Part),
        visits.change(site, "/credentials", create, form=NewCredential),
        visits.change(site, "/credentials/{id}/revoke", revoke),
    )
