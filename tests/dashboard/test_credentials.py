"""The page of SMTP credentials: made, shown once, listed, revoked."""

import base64
import html
import re

import msgspec
import pytest

from postroad import config, context
from postroad.services.domains import domain_registry as domains
from postroad.services.people import api_keys, authentication, credentials
from tests.dashboard import browser_client
from tests.dashboard.browser_client import Browser

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
