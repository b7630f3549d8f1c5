"""Everything that can be read is read once, on an installation that has one of everything: nothing breaks.

The routes are read off the tables that the service is made of. One with a parameter that has no example here fails.
"""

from pathlib import Path
from typing import Final

import pytest

from postroad import config, context
from postroad.dashboard.framework import cookies
from postroad.dashboard.framework import site as sites
from postroad.model.people import callers
from postroad.services.operations.checks import table
from postroad.services.people import logins
from postroad.storage.people import users
from tests import contexts
from tests.contexts import database_url
from tests.dashboard.browser_client import Switch
from tests.permissions import installation, surfaces, walks
from tests.permissions.installation import installed

# The kind of thing that a path names; what needs two has them with a slash between.
EXAMPLES: Final = {
    "/approvals/{id}/request": "approval",
    "/domains/{id}": "domain",
    "/domains/{id}/reports": "domain",
    "/domains/{id}/zone": "domain",
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
    "/received/{id}": "received_mail",
    "/received/{id}/attachments/{index}": "received_file",
    "/received/{id}/preview/html": "received_mail",
    "/received/{id}/raw": "received_mail",
    "/recipients/{email}": "recipient",
    "/requests/{id}": "request",
    "/sso/{connection}/callback": "connection",
    "/team/{id}": "user",
    "/template/new/{starter}": "starter",
    "/template/new/{starter}/picture": "starter",
    "/templates/{alias}": "template",
    "/templates/{alias}/picture": "template",
    "/templates/{alias}/preview": "template",
    "/templates/{alias}/versions": "template",
    "/unsubscribe/{token}": "unsubscribe",
    "/v1/credentials/{id}": "credential",
    "/v1/domains/{id}": "domain",
    "/v1/domains/{id}/reports": "domain",
    "/v1/event-schemas/{type}": "event_type",
    "/v1/inbound/attachments/{token}": "received_link",
    "/v1/inbound/routes/{id}": "inbound_route",
    "/v1/inbound/{id}": "received_mail",
    "/v1/inbound/{id}/raw": "received_mail",
    "/v1/inbox/{id}/raw": "received",
    "/v1/messages/{id}": "message",
    "/v1/messages/{id}/checks": "message",
    "/v1/messages/{id}/raw": "message",
    "/v1/operator/accounts/{id}": "account",
    "/v1/operator/jobs/{id}": "job",
    "/v1/operator/providers/{name}": "provider",
    "/v1/operator/sources/{name}": "source",
    "/v1/requests/{id}": "request",
    "/v1/suppressions/{email}": "suppression",
    "/v1/templates/{alias}": "template",
    "/v1/webhook/deliveries/{id}": "delivery",
    "/v1/webhooks/{webhook}": "webhook",
    "/v1/webhooks/{webhook}/deliveries": "webhook",
    "/v1/webhooks/{webhook}/deliveries/{id}": "webhook_delivery",
    "/webhooks/{webhook}": "webhook",
    "/webhooks/{webhook}/deliveries/{id}": "webhook_delivery",
    "/webhooks/{webhook}/secret": "webhook",
    "/webhooks/{webhook}/settings": "webhook",
}
# What a page has to be asked for, and other views of the same page.
QUERIES: Final = {
    "/": ("", "?period=30d"),
    "/audit-log": ("", "?action=domain.added"),
    "/bulk": ("?action=retry&search=status:queued", "?action=cancel&search=status:queued"),
    "/credits": ("", "?day=2027-01-15"),
    "/failures": ("", "?period=30d"),
    "/find": ("", "?q=shop"),
    "/messages": ("", "?search=status:bounced", "?search=metadata.order:7"),
    "/received": ("", "?search=receipt"),
    "/operator/queue/change": ("?action=hold&all=true", "?action=retry&all=true"),
    "/operator/queue/recipients": ("", "?domain=museum.example"),
    "/v1/messages": ("", "?status=failed"),
}
# What is answered otherwise than with 200, and why.
OTHERWISE: Final = {
    # Who is logged in goes on.
    "/login": 303,
    "/login/second-factor": 303,
    # The provider did not send this browser there.
    "/sso/{connection}/callback": 400,
}
__all__ = ["database_url", "installed"]


@pytest.fixture
def settings(database_url: str, tmp_path: Path) -> config.Settings:
    return installation.settings(database_url)


async def log_in(ctx: context.Context, user: users.User) -> surfaces.Credential:
    """What somebody has who has logged in, over the API and with a browser."""
    session = await contexts.begin_session(ctx, user)
    token = (await logins.issue_token(ctx, user)).token
    return surfaces.Credential(user.email, f"Bearer {token}", {f"__Host-{cookies.SESSION}": session.token})


async def test_every_get_of_an_installation_with_one_of_everything_is_answered(
    ctx: context.Context,
    installed: installation.Installation,
    site: sites.Site,
    switch: Switch,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    switch.stopping = True
    # The others look at this host, and at its DNS.
    monkeypatch.setattr(table, "CHECKS", {"database": table.CHECKS["database"]})
    owner, operator = await log_in(ctx, installed.owner), await log_in(ctx, installed.operator)

    def who(route: surfaces.Route) -> surfaces.Credential:
        return operator if route.permission is callers.Permission.OPERATE else owner

    served = surfaces.build(ctx, site)
    assert {path for surface in served for path in walks.with_parameters(surface)} == EXAMPLES.keys()
    wrong = [
        line
        for surface in served
        for line in await walks.unanswered(
            surface, installed.things, EXAMPLES, who, queries=QUERIES, otherwise=OTHERWISE
        )
    ]
    await site.operator_state.close()
    assert wrong == [], "\n".join(wrong)
