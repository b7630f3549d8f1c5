"""Each route takes who the table of roles says, answers where there is one of everything, and hides content.

The walks are those of the core (tests/permissions), on an installation that has one of everything.
"""

import dataclasses
from pathlib import Path

import pytest

from postroad import config, context
from postroad.dashboard.framework import site as sites
from postroad.model.people import callers
from postroad.services.messages import dev_inbox
from postroad.storage.people import accounts
from postroad_resend import api
from tests.compat import compat_client
from tests.dashboard.browser_client import Switch, mail, mine, prepared, site, switch
from tests.permissions import installation, surfaces, test_analyst, walks
from tests.permissions.installation import installed

__all__ = ["installed", "mail", "mine", "prepared", "site", "switch"]

Permission = callers.Permission
# What a GET without another entry needs is VIEW, and anything else CHANGE.
NEEDED = {
    Permission.CONTENT: {
        "GET /compat/resend/emails",
        "GET /compat/resend/emails/{id}",
        "GET /compat/resend/emails/receiving",
        "GET /compat/resend/emails/receiving/{id}",
        "GET /compat/resend/emails/receiving/{id}/attachments",
        "GET /compat/resend/emails/receiving/{id}/attachments/{attachment}",
        "GET /compat/resend/templates",
        "GET /compat/resend/templates/{id}",
    },
    Permission.SEND: {
        "PATCH /compat/resend/emails/{id}",
        "POST /compat/resend/emails",
        "POST /compat/resend/emails/batch",
        "POST /compat/resend/emails/{id}/cancel",
    },
}
# The kind of thing that a path names.
EXAMPLES = {
    "/compat/resend/domains/{id}": "domain",
    "/compat/resend/emails/{id}": "message",
    "/compat/resend/emails/receiving/{id}": "received_mail",
    "/compat/resend/emails/receiving/{id}/attachments": "received_mail",
    "/compat/resend/emails/receiving/{id}/attachments/{attachment}": "resend_file",
    "/compat/resend/suppressions/{email}": "suppression",
    "/compat/resend/templates/{id}": "template",
    "/compat/resend/webhooks/{id}": "resend_webhook",
    "/compat/resend/webhooks/{id}/events": "resend_webhook",
    "/compat/resend/webhooks/{id}/events/{event}": "resend_event",
    "/compat/resend/webhooks/{id}/events/{event}/attempts": "resend_event",
}
# Documented as not supported.
OTHERWISE = {"/compat/resend/emails/metrics": 404}
# Where a reader finds content, and an analyst does not.
SHOWN = {
    "GET /compat/resend/emails",
    "GET /compat/resend/emails/{id}",
    "GET /compat/resend/templates/{id}",
}


@pytest.fixture
def settings(database_url: str, tmp_path: Path) -> config.Settings:
    return installation.settings(database_url)


@pytest.fixture
def surface(ctx: context.Context) -> surfaces.Surface:
    return surfaces.of_extension(ctx, api.API)


def test_each_route_requires_the_permission_that_is_listed(surface: surfaces.Surface) -> None:
    assert walks.wrong_permissions(surface, NEEDED) == []


@pytest.mark.parametrize("kind", surfaces.KINDS)
async def test_a_credential_opens_what_the_table_says_and_nothing_else(
    ctx: context.Context, site: sites.Site, mine: accounts.Account, surface: surfaces.Surface, kind: str
) -> None:
    credential = await surfaces.new_credential(ctx, surfaces.build(ctx, site), mine.id, kind)
    assert await walks.wrong_answers(surface, credential) == []


async def test_every_get_of_an_installation_with_one_of_everything_is_answered(
    ctx: context.Context, installed: installation.Installation, surface: surfaces.Surface
) -> None:
    key = await compat_client.new_key(ctx, installed.owner.account_id)
    program = surfaces.Credential("key", f"Bearer {key}")
    assert walks.with_parameters(surface) == EXAMPLES.keys()
    wrong = await walks.unanswered(surface, installed.things, EXAMPLES, lambda _: program, otherwise=OTHERWISE)
    assert wrong == [], "\n".join(wrong)


async def test_content_is_hidden_from_an_analyst(
    ctx: context.Context,
    site: sites.Site,
    switch: Switch,
    mail: dev_inbox.Inbox,
    mine: accounts.Account,
    surface: surfaces.Surface,
) -> None:
    switch.stopping = True
    scene = await test_analyst.open_scene(ctx, site, mail, mine.id)
    await test_analyst.check_hidden(dataclasses.replace(scene, built=[surface]), SHOWN)
