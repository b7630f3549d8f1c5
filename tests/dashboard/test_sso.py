"""Single sign-on in a browser: the way to the provider and back, the page of owners, and logging out.

The provider is on loopback (tests/oidc_provider.py); these tests do what a browser does with its answers.
"""

import html
import re
from collections.abc import AsyncIterator
from urllib import parse

import httpx
import pytest
import pytest_asyncio

from postroad import config, context
from postroad.dashboard.framework import cookies
from postroad.services.domains import domain_registry
from postroad.services.people import sso_connections
from postroad.services.people import users as account_users
from tests import contexts, oidc_provider
from tests.dashboard.browser_client import Browser, location_of, notice_of

FORM = {
    "client_id": oidc_provider.CLIENT_ID,
    "client_secret": oidc_provider.SECRET,
    "domains": "corp.example",
    "scopes": "email",
    "role": "read_only",
    "groups_claim": "groups",
    "creates_users": "true",
    "allows_passwords": "true",
}


@pytest.fixture
def settings(database_url: str) -> config.Settings:
    """Accounts may use loopback here."""
    return config.load(
        environment={},
        overrides={
            "database": {"url": database_url},
            "security": {"installation_key": contexts.SECRET_KEY},
            "webhooks": {"allow_insecure": True},
        },
    )


@pytest_asyncio.fixture
async def provider(clock: contexts.Clock) -> AsyncIterator[oidc_provider.Provider]:
    async with oidc_provider.running(now=lambda: clock() / contexts.SECOND) as running:
        yield running


async def connect(ctx: context.Context, browser: Browser, provider: oidc_provider.Provider, **more: str) -> None:
    """What an owner does on the page."""
    await domain_registry.add(ctx, browser.account_id, "corp.example", verified=True)
    saved = await browser.post("/team/sso", {**FORM, "issuer": provider.issuer, **more})
    assert notice_of(saved) == "Single sign-on saved. Test it before you tell your users."


def leads_to(response: httpx.Response) -> str:
    """Where a page sends a browser, at once and by its link."""
    assert response.status_code == 200, response.text
    (link,) = re.findall(r'<a class="button" href="([^"]+)"', response.text)
    assert response.headers["refresh"] == f"0; url={html.unescape(link)}"
    return html.unescape(link)


async def come_back(browser: Browser, url: str, provider: oidc_provider.Provider) -> httpx.Response:
    """What the provider and the browser do next."""
    target = dict(parse.parse_qsl(parse.urlsplit(url).query))["redirect_uri"]
    answer = {**provider.authorize(url), "session_state": "Keycloak adds this", "authuser": "0"}
    return await browser.client.get(parse.urlsplit(target).path, params=answer)


async def test_a_person_is_sent_to_the_provider_and_comes_back_logged_in(
    ctx: context.Context, browser: Browser, nobody: Browser, provider: oidc_provider.Provider
) -> None:
    await connect(ctx, browser, provider)
    assert "/login/sso?next=/domains" in (await nobody.get("/login", next="/domains")).text
    assert 'value="/domains"' in (await nobody.get("/login/sso", next="/domains")).text
    begun = await nobody.client.post("/login/sso", data={"email": "jo@corp.example", "next": "/domains"})
    field = begun.headers["set-cookie"]
    assert re.fullmatch(r"postroad_sso=[\w.-]+; Path=/; Max-Age=600; HttpOnly; SameSite=Lax", field)
    back = await come_back(nobody, leads_to(begun), provider)
    assert (back.status_code, back.headers["location"]) == (303, "/domains")
    assert cookies.SSO not in nobody.client.cookies, "the attempt is over"
    page = await nobody.follow(back)
    assert "jo@corp.example" in page.text


async def test_scripts_are_told_where_to_go(
    ctx: context.Context, browser: Browser, nobody: Browser, provider: oidc_provider.Provider
) -> None:
    await connect(ctx, browser, provider)
    answer = await nobody.client.post("/login/sso", data={"email": "jo@corp.example"}, headers={"X-Enhanced": "form"})
    assert answer.status_code == 204
    assert answer.headers["go-to"].startswith(f"{provider.issuer}/authorize?")


async def test_an_email_without_single_sign_on_is_told_whoever_it_is(nobody: Browser, browser: Browser) -> None:
    assert browser.user is not None
    texts = set()
    for email in (browser.user.email, f"unknown@{browser.user.email.rpartition('@')[2]}"):
        refused = await nobody.client.post("/login/sso", data={"email": email})
        assert refused.status_code == 400
        texts.add(re.sub(r"req_\w+", "", refused.text))
    assert len(texts) == 1
    assert "there is no single sign-on for" in texts.pop()
    refused = await nobody.client.post("/login/sso", data={"next": "/"})
    assert "This installation has no single sign-on" in refused.text


async def test_a_refusal_says_what_to_change(
    ctx: context.Context, browser: Browser, nobody: Browser, provider: oidc_provider.Provider
) -> None:
    await connect(ctx, browser, provider)
    provider.claims = {"email_verified": False}
    url = leads_to(await nobody.client.post("/login/sso", data={"email": "jo@corp.example"}))
    refused = await come_back(nobody, url, provider)
    assert refused.status_code == 403
    assert "The provider does not say that your email is verified" in refused.text
    assert oidc_provider.SECRET not in refused.text


async def test_a_connection_that_does_not_exist_is_not_found(nobody: Browser) -> None:
    for name in ("nothing", "acc_" + "0" * 28):
        assert (await nobody.get(f"/sso/{name}/callback", state="x", code="y")).status_code in (400, 404)


async def test_a_test_changes_nothing_and_shows_what_the_provider_says(
    ctx: context.Context, browser: Browser, provider: oidc_provider.Provider
) -> None:
    await connect(ctx, browser, provider, groups="mail-admins = owner")
    before = await account_users.of_account(ctx, browser.account_id)
    provider.claims = {"groups": ["staff", "mail-admins"]}
    back = await come_back(browser, leads_to(await browser.post("/team/sso/test")), provider)
    assert back.status_code == 200
    for text in ("The connection works", "jo@corp.example", "staff, mail-admins", "<dd>owner</dd>"):
        assert text in back.text
    assert await account_users.of_account(ctx, browser.account_id) == before
    assert (await browser.get("/team")).status_code == 200, "the owner is still logged in"
    provider.claims = {"email": "jo@other.example"}
    back = await come_back(browser, leads_to(await browser.post("/team/sso/test")), provider)
    assert "this person could not log in: Your email is not in a domain" in back.text


async def test_the_page_shows_what_was_saved_and_never_the_secret(
    ctx: context.Context, browser: Browser, provider: oidc_provider.Provider
) -> None:
    assert "Add and verify a domain" in (await browser.get("/team/sso")).text
    await connect(ctx, browser, provider, groups="b = owner\n\n a group = developer ")
    page = await browser.get("/team/sso")
    for text in (provider.issuer, oidc_provider.CLIENT_ID, "b = owner\na group = developer", "Test the connection"):
        assert text in page.text
    assert oidc_provider.SECRET not in html.unescape(page.text)
    assert f"/sso/{browser.account_id}/callback" in page.text
    kept = await browser.post("/team/sso", {**FORM, "issuer": provider.issuer, "client_secret": ""})
    assert location_of(kept) == "/team/sso"
    found = await sso_connections.find(ctx, browser.account_id)
    assert found is not None
    assert sso_connections.registration(ctx, found.row).client_secret == oidc_provider.SECRET
    refused = await browser.post("/team/sso", {**FORM, "issuer": provider.issuer, "groups": "admins: owner"})
    assert (refused.status_code, "a group, = and one of" in refused.text) == (400, True)


async def test_a_connection_is_removed(
    ctx: context.Context, browser: Browser, provider: oidc_provider.Provider
) -> None:
    await connect(ctx, browser, provider)
    assert notice_of(await browser.post("/team/sso/remove")) == "Single sign-on removed."
    assert await sso_connections.find(ctx, browser.account_id) is None


async def test_logging_out_ends_the_session_here_and_leads_to_the_provider(
    ctx: context.Context, browser: Browser, nobody: Browser, provider: oidc_provider.Provider
) -> None:
    await connect(ctx, browser, provider)
    url = leads_to(await nobody.client.post("/login/sso", data={"email": "jo@corp.example"}))
    page = await nobody.follow(await come_back(nobody, url, provider))
    (token,) = set(re.findall(r'name="csrf_token" value="(\w+)"', page.text))
    out = await nobody.client.post("/logout", data={"csrf_token": token})
    assert leads_to(out).startswith(f"{provider.issuer}/end?client_id=postroad&post_logout_redirect_uri=")
    assert location_of(await nobody.get("/team")) == "/login"


async def test_whoever_has_a_password_logs_out_here_alone(browser: Browser) -> None:
    assert location_of(await browser.post("/logout")) == "/login"
