"""`/credentials`: the SMTP credentials of the account. A password is shown once, in the response to the form."""

from postroad.dashboard import forms, lists, requests, snippets
from postroad.dashboard import site as sites
from postroad.model import identifiers
from postroad.services import context
from postroad.services.auth import credentials
from postroad.web import routing


class NewCredential(forms.Form, frozen=True, kw_only=True):
    """A credential to create."""

    name: str


async def show(page_request: requests.PageRequest) -> routing.Response:
    """The list, the form, and how to connect an application."""
    where = await snippets.snippet_context(page_request)
    listed = await lists.page(page_request, credentials.of_account, prefix=identifiers.CREDENTIAL)
    return page_request.page(
        "credentials.html", listed=listed, made=None, snippet_context=where, snippets=snippets.over_smtp(where)
    )


async def create(page_request: requests.PageRequest) -> routing.Response:
    """Create a credential and show its password once, with snippets that use it."""
    form: NewCredential = page_request.form
    made, password = await credentials.create(page_request.ctx, page_request.account_id, form.name)
    where = await snippets.snippet_context(page_request)
    shown = snippets.over_smtp(where, username=made.username, password=password)
    return page_request.page(
        "credentials.html", status=201, made=made, password=password, snippet_context=where, snippets=shown
    )


async def revoke(page_request: requests.PageRequest) -> routing.Response:
    """Revoke a credential."""
    credential = await credentials.find(page_request.ctx, page_request.account_id, page_request.request.path["id"])
    await credentials.revoke(page_request.ctx, page_request.account_id, credential.id)
    return page_request.redirect("/credentials", notice=f"{credential.name} and its API keys are revoked.")


def routes(site: sites.Site) -> tuple[routing.Route[context.Context], ...]:
    """The page and its actions."""
    return (
        requests.get(site, "/credentials", show, query=lists.Query),
        requests.post(site, "/credentials", create, form=NewCredential),
        requests.post(site, "/credentials/{id}/revoke", revoke),
    )
