"""The page of SMTP credentials: made, shown once, listed, revoked."""

import base64
import html
import re

import msgspec
import pytest

from postroad import config, context
from postroad.dashboard.framework import lists
from postroad.services.domains import domain_registry as domains
from postroad.services.people import api_keys, authentication, credentials
from tests import contexts
from tests.dashboard import browser_client
from tests.dashboard.browser_client import Browser

HOSTILE = "<script>alert('x')</script> \"shop\""
LISTENING = config.load(
    environment={}, overrides={"submission": {"listen": "127.0.0.1:2525", "auth_without_tls": True}}
).submission


@pytest.fixture
def settings(settings: config.Settings) -> config.Settings:
    """An installation that listens for SMTP on this machine."""
    return msgspec.structs.replace(settings, submission=LISTENING)


def copied(text: str, *, after: str) -> str:
    """What the first button behind a word copies."""
    found = re.search(r'data-copy="([^"]*)"', text.partition(after)[2])
    assert found, text
    return html.unescape(found[1])


async def test_an_empty_page_teaches_and_shows_how_to_connect(browser: Browser, reader: Browser) -> None:
    page = (await browser.get("/credentials")).text
    assert "No credentials yet" in page
    assert 'action="/credentials"' in page
    assert copied(page, after="<dt>Host</dt>") == "127.0.0.1"
    assert copied(page, after="<dt>Port</dt>") == "2525"
    assert "YOUR_PASSWORD" in page
    assert 'href="/domains">Add a domain' in page
    looked = (await reader.get("/credentials")).text
    assert 'action="/credentials"' not in looked
    assert "ask a developer, an admin or an owner" in looked


async def test_a_new_credential_shows_its_password_once_and_it_works(ctx: context.Context, browser: Browser) -> None:
    await domains.add(ctx, browser.account_id, "shop.example", verified=True)
    made = await browser.post("/credentials", {"name": "shop"})
    assert made.status_code == 201
    username = copied(made.text, after="<dt>Username</dt>")
    password = copied(made.text, after="<dt>Password</dt>")
    pair = base64.b64encode(f"{username}:{password}".encode()).decode()
    who = await authentication.authenticate(ctx, f"Basic {pair}", client_address="127.0.0.1")
    assert who.account_id == browser.account_id
    assert f"curl smtp://127.0.0.1:2525 -u {username}:{password}" in html.unescape(made.text)
    assert "hello@shop.example" in made.text
    assert "YOUR_PASSWORD" not in made.text
    assert "Add a domain" not in made.text
    again = (await browser.get("/credentials")).text
    assert password not in again
    assert f'data-copy="{username}"' in again
    assert "status-active" in again


async def test_a_name_that_is_none_is_refused_with_a_sentence(ctx: context.Context, browser: Browser) -> None:
    for name in ("", "n" * 101, "two\nlines"):
        refused = await browser.post("/credentials", {"name": name})
        assert refused.status_code == 400
        assert "name" in refused.text
    assert await credentials.of_account(ctx, browser.account_id) == []


async def test_a_hostile_name_is_only_text(browser: Browser) -> None:
    made = await browser.post("/credentials", {"name": HOSTILE})
    for page in (made.text, (await browser.get("/credentials")).text):
        assert "<script>alert" not in page
        assert "&lt;script&gt;alert" in page


async def test_revoking_stops_it_and_the_keys_under_it(ctx: context.Context, browser: Browser) -> None:
    made, _ = await credentials.create(ctx, browser.account_id, "shop")
    await api_keys.create(ctx, browser.account_id, credential_id=made.id, name="key", scopes=frozenset({"send"}))
    listed = (await browser.get("/credentials")).text
    assert "its API keys are revoked too" in listed
    assert 'aria-label="Revoke the credential shop"' in listed
    revoked = await browser.post(f"/credentials/{made.id}/revoke")
    assert browser_client.location_of(revoked) == "/credentials"
    page = (await browser.follow(revoked)).text
    assert "shop and its API keys are revoked." in page
    assert "status-revoked" in page
    assert "/revoke" not in page
    (key,) = await api_keys.of_account(ctx, browser.account_id)
    assert key.revoked_at is not None
    assert (await browser.post(f"/credentials/{made.id}/revoke")).status_code == 404


async def test_whoever_may_only_look_changes_nothing(ctx: context.Context, reader: Browser) -> None:
    made, _ = await credentials.create(ctx, reader.account_id, "shop")
    page = (await reader.get("/credentials")).text
    assert made.username in page
    assert "/revoke" not in page
    assert (await reader.post("/credentials", {"name": "mine"})).status_code == 403
    assert (await reader.post(f"/credentials/{made.id}/revoke")).status_code == 403
    assert [row.revoked_at for row in await credentials.of_account(ctx, reader.account_id)] == [None]


async def test_the_credential_of_another_account_is_not_there(
    ctx: context.Context, browser: Browser, stranger: Browser
) -> None:
    made, _ = await credentials.create(ctx, browser.account_id, "shop")
    assert made.username not in (await stranger.get("/credentials")).text
    assert (await stranger.post(f"/credentials/{made.id}/revoke")).status_code == 404
    assert (await credentials.find(ctx, browser.account_id, made.id)).revoked_at is None


async def test_nobody_sees_it_without_a_session(ctx: context.Context, browser: Browser, nobody: Browser) -> None:
    answer = await nobody.get("/credentials")
    assert (answer.status_code, browser_client.location_of(answer)) == (303, "/login")
    made, _ = await credentials.create(ctx, browser.account_id, "shop")
    assert browser_client.location_of(await nobody.post(f"/credentials/{made.id}/revoke")) == "/login"
    assert (await credentials.find(ctx, browser.account_id, made.id)).revoked_at is None


async def test_a_form_without_the_word_does_nothing(ctx: context.Context, browser: Browser) -> None:
    assert (await browser.client.post("/credentials", data={"name": "shop"})).status_code == 403
    assert await credentials.of_account(ctx, browser.account_id) == []


async def test_a_long_list_has_parts(
    ctx: context.Context, clock: contexts.Clock, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lists, "ROWS", 2)
    made = []
    for number in range(3):
        clock.pass_seconds(1)
        made.append((await credentials.create(ctx, browser.account_id, f"shop {number}"))[0])
    first = (await browser.get("/credentials")).text
    assert f"/credentials?after={made[1].id}" in first
    assert made[2].username not in first
    second = (await browser.get("/credentials", after=made[1].id)).text
    assert made[2].username in second
    assert "after=" not in second
    assert (await browser.get("/credentials", after="nonsense")).status_code == 400


class TestWithoutSmtp:
    """An installation where nobody listens for SMTP."""

    @pytest.fixture
    def settings(self, settings: config.Settings) -> config.Settings:
        return msgspec.structs.replace(settings, submission=msgspec.structs.replace(LISTENING, listen=""))

    async def test_the_page_says_so_and_credentials_can_still_be_made(self, browser: Browser) -> None:
        assert "SMTP submission is not enabled" in (await browser.get("/credentials")).text
        made = await browser.post("/credentials", {"name": "shop"})
        assert made.status_code == 201
        assert "<dt>Host</dt>" not in made.text
