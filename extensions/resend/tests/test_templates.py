"""Templates over Resend's API."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
import pytest_asyncio

from postroad import context
from postroad.services.accounts import account_registry
from postroad.services.templates import templates
from postroad.storage.people import accounts
from postroad_resend import api as resend
from tests import accepted_mail
from tests.compat import compat_client

WELCOME: dict[str, Any] = {
    "name": "Welcome Mail",
    "subject": "Hello {{{NAME}}}",
    "html": "<p>Hello {{{NAME}}}</p>",
    "variables": [{"key": "NAME", "type": "string"}],
}


@pytest_asyncio.fixture
async def client(ctx: context.Context, account: accounts.Account) -> AsyncIterator[httpx.AsyncClient]:
    await accepted_mail.allow_sending(ctx, account.id)
    key = await compat_client.new_key(ctx, account.id)
    async with compat_client.opened(ctx, resend.API, {"Authorization": f"Bearer {key}"}) as opened:
        yield opened


async def test_a_template_is_created_changed_copied_sent_and_removed(
    ctx: context.Context, client: httpx.AsyncClient, account: accounts.Account
) -> None:
    created = await client.post("/templates", json=WELCOME)
    assert (created.status_code, created.json()) == (201, {"object": "template", "id": "welcome-mail"})
    stored = await templates.find(ctx, account.id, "welcome-mail")
    assert (stored.subject, stored.html) == ("Hello {{NAME}}", "<p>Hello {{NAME}}</p>")
    changed = await client.patch("/templates/welcome-mail", json={"text": "Hello {{{NAME}}}"})
    assert changed.json() == {"object": "template", "id": "welcome-mail"}
    shown = (await client.get("/templates/welcome-mail")).json()
    assert (shown["subject"], shown["html"], shown["text"]) == (
        "Hello {{{NAME}}}",
        "<p>Hello {{{NAME}}}</p>",
        "Hello {{{NAME}}}",
    )
    assert [one["key"] for one in shown["variables"]] == ["NAME"]
    assert (shown["object"], shown["status"]) == ("template", "published")
    copied = await client.post("/templates/welcome-mail/duplicate")
    assert copied.json()["id"] == "welcome-mail-copy"
    again = [(await client.post("/templates/welcome-mail/duplicate")).json()["id"] for _ in range(2)]
    assert again == ["welcome-mail-copy-2", "welcome-mail-copy-3"]
    assert (await client.post("/templates/welcome-mail/publish")).json()["id"] == "welcome-mail"
    page = (await client.get("/templates", params={"limit": 1})).json()
    assert ([one["id"] for one in page["data"]], page["has_more"]) == (["welcome-mail"], True)
    email = {
        "from": "shop@example.com",
        "to": "ada@example.net",
        "template": {"id": "welcome-mail", "variables": {"NAME": "Ada"}},
    }
    message_id = (await client.post("/emails", json=email)).json()["id"]
    assert (await client.get(f"/emails/{message_id}")).json()["html"] == "<p>Hello Ada</p>"
    removed = await client.delete("/templates/welcome-mail")
    assert removed.json() == {"object": "template", "id": "welcome-mail", "deleted": True}
    assert (await client.get("/templates/welcome-mail")).json()["name"] == "not_found"


@pytest.mark.parametrize(
    "members, message",
    [
        ({"from": "a@example.com"}, "from: Postroad does not support"),
        ({"reply_to": "a@example.com"}, "reply_to: Postroad does not support"),
        (
            {"variables": [{"key": "NAME", "type": "string", "fallback_value": "you"}]},
            "variables[0].fallback_value: Postroad does not support",
        ),
        ({"name": "!!"}, "name: required"),
        ({"subject": None}, "subject"),
        ({"html": None}, "text: give at least one of text and html"),
        ({"html": "{% if x %}"}, "html"),
    ],
)
async def test_what_the_models_do_not_share_is_named(
    client: httpx.AsyncClient, members: dict[str, Any], message: str
) -> None:
    response = await client.post("/templates", json={**WELCOME, **members})
    assert (response.status_code, response.json()["name"]) == (422, "validation_error")
    assert message in response.json()["message"]
    assert (await client.get("/templates")).json()["data"] == []


async def test_an_alias_is_used_once_and_belongs_to_its_account(
    ctx: context.Context, client: httpx.AsyncClient
) -> None:
    await client.post("/templates", json=WELCOME)
    again = await client.post("/templates", json=WELCOME)
    assert (again.status_code, again.json()["name"]) == (409, "validation_error")
    other = await account_registry.create(ctx, "Other")
    key = await compat_client.new_key(ctx, other.id)
    async with compat_client.opened(ctx, resend.API, {"Authorization": f"Bearer {key}"}) as stranger:
        for method, path in [
            ("GET", ""), ("PATCH", ""), ("DELETE", ""), ("POST", "/duplicate"), ("POST", "/publish")
        ]:  # fmt: skip
            response = await stranger.request(method, f"/templates/welcome-mail{path}", json={})
            assert (response.status_code, response.json()["name"]) == (404, "not_found")
