"""`/keys`: the API keys of the account. A key is shown once, in the response to the form."""

from typing import Final

from postroad.dashboard import forms, lists, requests, snippets
from postroad.model import caller, identifiers, mail
from postroad.services.auth import api_keys, credentials
from postroad.web import routing


class NewKey(forms.Form, frozen=True, kw_only=True):
    """A key to create; without a credential it belongs to the oldest active one."""

    name: str
    credential_id: str | None = None
    may_read: bool | None = None
    mode: mail.Mode | None = None


async def show(request: requests.PageRequest) -> routing.Response:
    """The list, the form, and how to connect an application."""
    listed = await lists.page(request, api_keys.of_account, prefix=identifiers.API_KEY)
    known = await credentials.of_account(request.ctx, request.account_id)
    where = await snippets.snippet_context(request)
    return request.page(
        "api_keys.html",
        listed=listed,
        made=None,
        snippet_context=where,
        snippets=snippets.over_http(where),
        credentials={credential.id: credential for credential in known},
        live=[credential for credential in known if credential.revoked_at is None],
    )


async def create(request: requests.PageRequest) -> routing.Response:
    """Create a key and show it once, with snippets that use it."""
    form: NewKey = request.form
    read = {caller.Permission.READ} if form.may_read else set()
    made, secret = await api_keys.create(
        request.ctx,
        request.account_id,
        credential_id=form.credential_id,
        name=form.name,
        scopes=frozenset({caller.Permission.SEND} | read),
        mode=form.mode or mail.Mode.LIVE,
    )
    where = await snippets.snippet_context(request)
    shown = snippets.over_http(where, api_key=secret)
    return request.page(
        "api_keys.html",
        status=201,
        made=made,
        made_mode=api_keys.mode_of(made),
        secret=secret,
        snippet_context=where,
        snippets=shown,
    )


async def revoke(request: requests.PageRequest) -> routing.Response:
    """Revoke a key."""
    await api_keys.revoke(request.ctx, request.account_id, request.path["id"])
    return request.redirect("/keys", notice="API key revoked. Applications that use it can no longer send.")


ROUTES: Final = (
    requests.get("/keys", show, query=lists.Query),
    requests.post("/keys", create, form=NewKey),
    requests.post("/keys/{id}/revoke", revoke),
)
