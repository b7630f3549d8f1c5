"""Everything that can be read is read once, on an installation that has one of everything: nothing breaks.

The routes are read off the tables that the service is made of. One with a parameter that has no example here fails.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final
from urllib import parse

import httpx
import pytest

from postroad import config, context
from postroad.cli.framework import data_folder
from postroad.dashboard.framework import cookies
from postroad.dashboard.framework import site as sites
from postroad.model.people import callers
from postroad.services.messages import dev_inbox
from postroad.services.operations.checks import table
from postroad.services.people import logins
from postroad.storage.people import users
from postroad.web import routing
from tests import contexts
from tests.compat import compat_client
from tests.contexts import database_url
from tests.dashboard.browser_client import Switch
from tests.permissions import installation, surfaces
from tests.permissions.installation import Things

# The kind of thing that a path names; what needs two has them with a slash between.
EXAMPLES: Final = {
    "/approvals/{id}/request": "approval",
    "/compat/postmark/bounces/{id}": "postmark_bounce",
    "/compat/postmark/bounces/{id}/dump": "postmark_bounce",
    "/compat/postmark/domains/{id}": "postmark_domain",
    "/compat/postmark/message-streams/{stream}/suppressions/dump": "postmark_stream",
    "/compat/postmark/messages/outbound/{id}/details": "message",
    "/compat/postmark/messages/outbound/{id}/dump": "message",
    "/compat/postmark/templates/{id}": "postmark_template",
    "/compat/postmark/webhooks/{id}": "postmark_webhook",
    "/compat/resend/domains/{id}": "domain",
    "/compat/resend/emails/{id}": "message",
    "/compat/resend/suppressions/{email}": "suppression",
    "/compat/resend/templates/{id}": "template",
    "/compat/resend/webhooks/{id}": "resend_webhook",
    "/compat/resend/webhooks/{id}/events": "resend_webhook",
    "/compat/resend/webhooks/{id}/events/{event}": "resend_event",
    "/compat/resend/webhooks/{id}/events/{event}/attempts": "resend_event",
    "/domains/{id}": "domain",
    "/emails/{id}": "message",
    "/inbox/{id}": "received",
    "/inbox/{id}/attachments/{index}": "received_attachment",
    "/inbox/{id}/preview/html": "received",
    "/inbox/{id}/raw": "received",
    "/messages/{id}": "message",
    "/messages/{id}/attachments/{index}": "attachment",
    "/messages/{id}/code": "message",
    "/messages/{id}/preview/html": "message",
    "/messages/{id}/raw": "message",
    "/notices/{token}": "notice",
    "/operator/accounts/{id}": "account",
    "/operator/jobs/{id}": "job",
    "/operator/providers/{name}": "provider",
    "/operator/sources/{name}": "source",
    "/password/{token}": "password_link",
    "/recipients/{email}": "recipient",
    "/sso/{connection}/callback": "connection",
    "/team/{id}": "user",
    "/templates/{alias}": "template",
    "/templates/{alias}/preview": "template",
    "/templates/{alias}/versions": "template",
    "/v1/credentials/{id}": "credential",
    "/v1/domains/{id}": "domain",
    "/v1/event-schemas/{type}": "event_type",
    "/v1/inbox/{id}/raw": "received",
    "/v1/messages/{id}": "message",
    "/v1/messages/{id}/checks": "message",
    "/v1/messages/{id}/raw": "message",
    "/v1/operator/accounts/{id}": "account",
    "/v1/operator/jobs/{id}": "job",
    "/v1/operator/providers/{name}": "provider",
    "/v1/operator/sources/{name}": "source",
    "/v1/suppressions/{email}": "suppression",
    "/v1/templates/{alias}": "template",
    "/v1/webhook/deliveries/{id}": "delivery",
    "/v1/webhooks/{webhook}": "webhook",
    "/v1/webhooks/{webhook}/deliveries": "webhook",
    "/v1/webhooks/{webhook}/deliveries/{id}": "webhook_delivery",
    "/webhook/deliveries/{id}": "delivery",
    "/webhooks/{webhook}": "webhook",
    "/webhooks/{webhook}/deliveries/{id}": "webhook_delivery",
}
# Where callers of the compatible APIs learn the ids of those: the list, its member and that of an item.
LISTED: Final = {
    "postmark_bounce": ("/compat/postmark/bounces?count=5&offset=0", "Bounces", "ID"),
    "postmark_domain": ("/compat/postmark/domains?count=5&offset=0", "Domains", "ID"),
    "postmark_template": ("/compat/postmark/templates?count=5&offset=0", "Templates", "TemplateId"),
    "postmark_webhook": ("/compat/postmark/webhooks", "Webhooks", "ID"),
}
# What a page has to be asked for, and other views of the same page.
QUERIES: Final = {
    "/": ("", "?period=30d"),
    "/audit-log": ("", "?action=domain.added"),
    "/bulk": ("?action=retry&search=status:queued", "?action=cancel&search=status:queued"),
    "/failures": ("", "?period=30d"),
    "/find": ("", "?q=shop"),
    "/messages": ("", "?search=status:bounced", "?search=metadata.order:7"),
    "/operator/queue/change": ("?action=hold&all=true", "?action=retry&all=true"),
    "/operator/queue/recipients": ("", "?domain=museum.example"),
    "/v1/messages": ("", "?status=failed"),
}
# What is answered otherwise than with 200, and why.
OTHERWISE: Final = {
    # Documented as not supported.
    "/compat/postmark/bounces/tags": 404,
    "/compat/resend/emails/metrics": 404,
    "/compat/resend/emails/receiving": 404,
    # Who is logged in goes on.
    "/login": 303,
    "/login/second-factor": 303,
    # The provider did not send this browser there.
    "/sso/{connection}/callback": 400,
}
People = Mapping[str, surfaces.Credential]
__all__ = ["database_url"]


@pytest.fixture
def settings(database_url: str, tmp_path: Path) -> config.Settings:
    return installation.settings(database_url, tmp_path)


def paths(route: surfaces.Route, things: Things) -> list[str]:
    """The route with each of its examples, and with each of its queries."""
    found = [route.path]
    if parameters := routing.parameters(route.path):
        found = []
        for example in things[EXAMPLES[route.path.rstrip("/")]]:
            path = route.path
            for name, value in zip(parameters, example.split("/"), strict=True):
                path = path.replace(f"{{{name}}}", parse.quote(value, safe=""))
            found.append(path)
    return [f"{path}{query}" for path in found for query in QUERIES.get(route.path, ("",))]


async def log_in(ctx: context.Context, user: users.User) -> surfaces.Credential:
    """What somebody has who has logged in, over the API and with a browser."""
    session = await contexts.begin_session(ctx, user)
    token = (await logins.issue_token(ctx, user)).token
    return surfaces.Credential(user.email, f"Bearer {token}", {f"__Host-{cookies.SESSION}": session.token})


async def get(
    client: httpx.AsyncClient, path: str, who: surfaces.Credential, surface: surfaces.Surface
) -> httpx.Response:
    answer = await client.get(path, headers=who.headers(surface))
    client.cookies.clear()
    return answer


async def ids_of(
    client: httpx.AsyncClient, surface: surfaces.Surface, who: surfaces.Credential
) -> dict[str, list[str]]:
    """The ids of a compatible API."""
    found = {}
    for kind, (path, members, name) in LISTED.items():
        if path.partition("?")[0] in {route.path for route in surface.routes}:
            found[kind] = [str(item[name]) for item in (await get(client, path, who, surface)).json()[members]]
            assert found[kind], path
    return found


async def walk(surface: surfaces.Surface, found: installation.Installation, people: People) -> list[str]:
    """What was not answered as it should be."""
    wrong = []
    async with surfaces.opened(surface) as client:
        things = {**found.things, **await ids_of(client, surface, people["program"])}
        for route in surface.routes:
            if route.method != "GET":
                continue
            name = "operator" if route.permission is callers.Permission.OPERATE else "owner"
            who = people["program" if surface.name == surfaces.COMPATIBLE else name]
            for path in paths(route, things):
                answer = await get(client, path, who, surface)
                if answer.status_code != OTHERWISE.get(route.path.rstrip("/"), 200):
                    wrong.append(f"{path}: {answer.status_code} {answer.text[:200]}")
    return wrong


async def test_every_get_of_an_installation_with_one_of_everything_is_answered(
    ctx: context.Context,
    clock: contexts.Clock,
    site: sites.Site,
    switch: Switch,
    mail: dev_inbox.Inbox,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    switch.stopping = True
    # The others look at this host, and at its DNS.
    monkeypatch.setattr(table, "CHECKS", {"database": table.CHECKS["database"]})
    # The sample week asks for a store of its own; here it has one.
    monkeypatch.setattr(data_folder.DataFolder, "owns", lambda *_: True)
    found = await installation.furnish(ctx, clock, mail, tmp_path)
    key = await compat_client.new_key(ctx, found.owner.account_id)
    people = {
        "owner": await log_in(ctx, found.owner),
        "operator": await log_in(ctx, found.operator),
        "program": surfaces.Credential("key", f"Bearer {key}"),
    }
    served = surfaces.build(ctx, site)
    routes = [route for surface in served for route in surface.routes if route.method == "GET"]
    assert {route.path.rstrip("/") for route in routes if routing.parameters(route.path)} == EXAMPLES.keys()
    wrong = [line for surface in served for line in await walk(surface, found, people)]
    await site.operator_state.close()
    assert wrong == [], "\n".join(wrong)
