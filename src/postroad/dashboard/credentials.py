"""`/credentials`: the SMTP credentials of the account. A password is shown once, in the response to the form."""

from typing import Final

from postroad.dashboard import forms, lists, requests, snippets
from postroad.model import identifiers
from postroad.services.auth import credentials
from postroad.web import routing


class NewCredential(forms.Form, frozen=True, kw_only=True):
    """A credential to create."""

    name: str


async def show(request: requests.PageRequest) -> routing.Response:
    """The list, the form, and how to connect an application."""
    where = await snippets.snippet_context(request)
    listed = await lists.page(request, credentials.of_account, prefix=identifiers.CREDENTIAL)
    return request.page(
        "credentials.html", listed=listed, made=None, snippet_context=where, snippets=snippets.over_smtp(where)
    )


async def create(request: requests.PageRequest) -> routing.Response:
    """Create a credential and show its password once, with snippets that use it."""
    form: NewCredential = request.form
    made, password = await credentials.create(request.ctx, request.account_id, form.name)
    where = await snippets.snippet_context(request)
    shown = snippets.over_smtp(where, username=made.username, password=password)
    return request.page(
        "credentials.html", status=201, made=made, password=password, snippet_context=where, snippets=shown
    )


async def revoke(request: requests.PageRequest) -> routing.Response:
    """Revoke a credential."""
    credential = await credentials.find(request.ctx, request.account_id, request.path["id"])
    await credentials.revoke(request.ctx, request.account_id, credential.id)
    return request.redirect("/credentials", notice=f"{credential.name} and its API keys are revoked.")


ROUTES: Final = (
    requests.get("/credentials", show, query=lists.Query),
    requests.post("/credentials", create, form=NewCredential),
    requests.post("/credentials/{id}/revoke", revoke),
)
