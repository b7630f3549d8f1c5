"""Each route takes who the table of roles says, answers where there is one of everything, and hides content.

The walks are those of the core (tests/permissions), on an installation that has one of everything.
"""

import dataclasses
from pathlib import Path

import httpx
import pytest

from postroad import config, context
from postroad.dashboard.framework import site as sites
from postroad.model.people import callers
from postroad.services.messages import dev_inbox
from postroad.storage.people import accounts
from postroad_postmark import api
from tests.compat import compat_client
from tests.dashboard.browser_client import Switch, mail, mine, prepared, site, switch
from tests.permissions import installation, surfaces, test_analyst, walks
from tests.permissions.installation import installed

__all__ = ["installed", "mail", "mine", "prepared", "site", "switch"]

Permission = callers.Permission
# What a GET without another entry needs is VIEW, and anything else CHANGE.
NEEDED = {
    Permission.CONTENT: {
        "GET /compat/postmark/bounces",
        "GET /compat/postmark/bounces/{id}",
        "GET /compat/postmark/bounces/{id}/dump",
        "GET /compat/postmark/messages/outbound",
        "GET /compat/postmark/messages/outbound/{id}/details",
        "GET /compat/postmark/messages/outbound/{id}/dump",
        "GET /compat/postmark/templates",
        "GET /compat/postmark/templates/{id}",
    },
    Permission.SEND: {
        "POST /compat/postmark/email",
        "POST /compat/postmark/email/batch",
        "POST /compat/postmark/email/batchWithTemplates",
        "POST /compat/postmark/email/withTemplate",
    },
}
# The kind of thing that a path names.
EXAMPLES = {
    "/compat/postmark/bounces/{id}": "bounce",
    "/compat/postmark/bounces/{id}/dump": "bounce",
    "/compat/postmark/domains/{id}": "domain",
    "/compat/postmark/message-streams/{stream}/suppressions/dump": "stream",
    "/compat/postmark/messages/outbound/{id}/details": "message",
    "/compat/postmark/messages/outbound/{id}/dump": "message",
    "/compat/postmark/templates/{id}": "template",
    "/compat/postmark/webhooks/{id}": "webhook",
}
# Where callers learn the ids of this API, which are numbers: the list, its member and that of an item.
LISTED = {
    "bounce": ("/compat/postmark/bounces?count=5&offset=0", "Bounces", "ID"),
    "domain": ("/compat/postmark/domains?count=5&offset=0", "Domains", "ID"),
    "template": ("/compat/postmark/templates?count=5&offset=0", "Templates", "TemplateId"),
    "webhook": ("/compat/postmark/webhooks", "Webhooks", "ID"),
}
# Documented as not supported.
OTHERWISE = {"/compat/postmark/bounces/tags": 404}
# Where a reader finds content, and an analyst does not.
SHOWN = {"GET /compat/postmark/messages/outbound/{id}/details", "GET /compat/postmark/messages/outbound/{id}/dump"}


def is_refused(answer: httpx.Response) -> bool:
    """Whether the credential was not enough. This API has no status for a role."""
    return walks.is_refused(answer) or (answer.is_error and "does not permit this" in answer.text)


@pytest.fixture
def settings(database_url: str, tmp_path: Path) -> config.Settings:
    return installation.settings(database_url)


@pytest.fixture
def surface(ctx: context.Context) -> surfaces.Surface:
    return surfaces.of_extension(ctx, api.API)


@pytest.fixture
def without_slash(surface: surfaces.Surface) -> surfaces.Surface:
    """The routes are there again with a slash at the end."""
    routes = tuple(route for route in surface.routes if not route.path.endswith("/"))
    assert {route.path.rstrip("/") for route in surface.routes} == {route.path for route in routes}
    return dataclasses.replace(surface, routes=routes)


def test_each_route_requires_the_permission_that_is_listed(without_slash: surfaces.Surface) -> None:
    assert walks.wrong_permissions(without_slash, NEEDED) == []


@pytest.mark.parametrize("kind", surfaces.KINDS)
async def test_a_credential_opens_what_the_table_says_and_nothing_else(
    ctx: context.Context, site: sites.Site, mine: accounts.Account, surface: surfaces.Surface, kind: str
) -> None:
    credential = await surfaces.new_credential(ctx, surfaces.build(ctx, site), mine.id, kind)
    assert await walks.wrong_answers(surface, credential, is_refused=is_refused) == []


async def test_every_get_of_an_installation_with_one_of_everything_is_answered(
    ctx: context.Context, installed: installation.Installation, without_slash: surfaces.Surface
) -> None:
    key = await compat_client.new_key(ctx, installed.owner.account_id)
    program = surfaces.Credential("key", f"Bearer {key}")
    things = {"message": installed.things["message"], "stream": ["outbound"]}
    async with surfaces.opened(without_slash) as client:
        for kind, (path, members, name) in LISTED.items():
            listed = (await walks.get(client, path, program, without_slash)).json()[members]
            things[kind] = [str(item[name]) for item in listed]
            assert things[kind], path
    assert walks.with_parameters(without_slash) == EXAMPLES.keys()
    wrong = await walks.unanswered(without_slash, things, EXAMPLES, lambda _: program, otherwise=OTHERWISE)
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
