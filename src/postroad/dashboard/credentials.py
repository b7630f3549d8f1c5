"""`/credentials`: the SMTP credentials of the account. A password is shown once, on the page that answers its form."""

from postroad.dashboard import forms, lists, snippets, visits
from postroad.dashboard import site as sites
from postroad.model import identifiers
from postroad.services import context, credentials
from postroad.web import routing


class NewCredential(forms.Form, frozen=True, kw_only=True):
    """A credential to make."""

    name: str


async def show(visit: visits.Visit) -> routing.Answer:
    """The list, the form, and how to connect an application."""
    where = await snippets.place(visit)
    listed = await lists.part(visit, credentials.of_account, prefix=identifiers.CREDENTIAL)
    return visit.page("credentials.html", listed=listed, made=None, place=where, snippets=snippets.over_smtp(where))


async def create(visit: visits.Visit) -> routing.Answer:
    """Make a credential and show its password, this once, with everything that an application needs."""
    form: NewCredential = visit.form
    made, password = await credentials.create(visit.ctx, visit.account_id, form.name)
    where = await snippets.place(visit)
    shown = snippets.over_smtp(where, username=made.username, password=password)
    return visit.page("credentials.html", status=201, made=made, password=password, place=where, snippets=shown)


async def revoke(visit: visits.Visit) -> routing.Answer:
    """Stop a credential."""
    credential = await credentials.find(visit.ctx, visit.account_id, visit.request.path["id"])
    await credentials.revoke(visit.ctx, visit.account_id, credential.id)
    return visit.go("/credentials", notice=f"{credential.name} is revoked, and so are the API keys under it.")


def routes(site: sites.Site) -> tuple[routing.Route[context.Context], ...]:
    """The page and what can be done on it."""
    return (
        visits.look(site, "/credentials", show, query=lists.Query),
        visits.change(site, "/credentials", create, form=NewCredential),
        visits.change(site, "/credentials/{id}/revoke", revoke),
    )
