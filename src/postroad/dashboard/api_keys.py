"""`/keys`: the API keys of the account. A key is shown once, on the page that answers its form."""

from postroad.dashboard import forms, lists, requests, snippets
from postroad.dashboard import site as sites
from postroad.model import caller, identifiers
from postroad.services import context
from postroad.services.auth import api_keys, credentials
from postroad.web import routing


class NewKey(forms.Form, frozen=True, kw_only=True):
    """A key to make; without a credential it is under the oldest live one."""

    name: str
    credential_id: str | None = None
    may_read: bool | None = None


async def show(page_request: requests.PageRequest) -> routing.Response:
    """The list, the form, and how to connect an application."""
    listed = await lists.page(page_request, api_keys.of_account, prefix=identifiers.API_KEY)
    known = await credentials.of_account(page_request.ctx, page_request.account_id)
    where = await snippets.place(page_request)
    return page_request.page(
        "keys.html",
        listed=listed,
        made=None,
        place=where,
        snippets=snippets.over_http(where),
        credentials={credential.id: credential for credential in known},
        live=[credential for credential in known if credential.revoked_at is None],
    )


async def create(page_request: requests.PageRequest) -> routing.Response:
    """Make a key and show it, this once, with code that sends."""
    form: NewKey = page_request.form
    read = {caller.Permission.READ} if form.may_read else set()
    made, secret = await api_keys.create(
        page_request.ctx,
        page_request.account_id,
        credential_id=form.credential_id,
        name=form.name,
        scopes=frozenset({caller.Permission.SEND} | read),
    )
    where = await snippets.place(page_request)
    shown = snippets.over_http(where, api_key=secret)
    return page_request.page("keys.html", status=201, made=made, secret=secret, place=where, snippets=shown)


async def revoke(page_request: requests.PageRequest) -> routing.Response:
    """Stop a key."""
    await api_keys.revoke(page_request.ctx, page_request.account_id, page_request.request.path["id"])
    return page_request.redirect("/keys", notice="The key is revoked. Whatever used it cannot send any more.")


def routes(site: sites.Site) -> tuple[routing.Route[context.Context], ...]:
    """The page and what can be done on it."""
    return (
        requests.get(site, "/keys", show, query=lists.Query),
        requests.post(site, "/keys", create, form=NewKey),
        requests.post(site, "/keys/{id}/revoke", revoke),
    )
