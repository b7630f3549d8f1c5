"""`/keys`: the API keys of the account. A key is shown once, on the page that answers its form."""

from postroad.dashboard import forms, lists, snippets, visits
from postroad.dashboard import site as sites
from postroad.model import caller, identifiers
from postroad.services import api_keys, context, credentials
from postroad.web import routing


class NewKey(forms.Form, frozen=True, kw_only=True):
    """A key to make; without a credential it is under the oldest live one."""

    name: str
    credential_id: str | None = None
    may_read: bool | None = None


async def show(visit: visits.Visit) -> routing.Answer:
    """The list, the form, and how to connect an application."""
    listed = await lists.part(visit, api_keys.of_account, prefix=identifiers.API_KEY)
    known = await credentials.of_account(visit.ctx, visit.account_id)
    where = await snippets.place(visit)
    return visit.page(
        "keys.html",
        listed=listed,
        made=None,
        place=where,
        snippets=snippets.over_http(where),
        credentials={credential.id: credential for credential in known},
        live=[credential for credential in known if credential.revoked_at is None],
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
    where = await snippets.place(visit)
    shown = snippets.over_http(where, api_key=secret)
    return visit.page("keys.html", status=201, made=made, secret=secret, place=where, snippets=shown)


async def revoke(visit: visits.Visit) -> routing.Answer:
    """Stop a key."""
    await api_keys.revoke(visit.ctx, visit.account_id, visit.request.path["id"])
    return visit.go("/keys", notice="The key is revoked. Whatever used it cannot send any more.")


def routes(site: sites.Site) -> tuple[routing.Route[context.Context], ...]:
    """The page and what can be done on it."""
    return (
        visits.look(site, "/keys", show, query=lists.Query),
        visits.change(site, "/keys", create, form=NewKey),
        visits.change(site, "/keys/{id}/revoke", revoke),
    )
