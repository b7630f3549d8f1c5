"""Passkeys over HTTP: added, used to log in, and removed, with an authenticator in software."""

import httpx
import pytest

from postroad import context
from postroad.dashboard.framework import cookies
from postroad.model.people import login_rules
from postroad.model.units import times
from postroad.services.people import sessions
from tests import contexts
from tests.dashboard import browser_client
from tests.dashboard.browser_client import Browser
from tests.software_authenticator import SoftwareAuthenticator

ORIGIN = "http://localhost:8025"
# As a browser sends a form without fields.
EMPTY = {"csrf_token": ""}


async def add(browser: Browser, authenticator: SoftwareAuthenticator, name: str = "Laptop") -> httpx.Response:
    asked = await browser.post("/profile/passkeys/options")
    assert (asked.status_code, asked.headers["content-type"]) == (200, "application/json")
    return await browser.post("/profile/passkeys", {"name": name, "answer": authenticator.create(asked.json())})


async def test_a_passkey_is_added_and_logs_in_without_a_password(
    ctx: context.Context, browser: Browser, nobody: Browser
) -> None:
    authenticator = SoftwareAuthenticator(ORIGIN)
    added = await add(browser, authenticator)
    assert (added.status_code, "Your recovery codes" in added.text, "Laptop" in added.text) == (201, True, True)
    spare = await add(browser, SoftwareAuthenticator(ORIGIN), "Key")
    assert browser_client.notice_of(spare) == "Passkey added: Key."
    assert "Key" in (await browser.follow(spare)).text
    asked = await nobody.client.post("/login/passkey/options", data=EMPTY)
    answer = {"answer": authenticator.get(asked.json()), "next": "/messages"}
    opened = await nobody.client.post("/login/passkey", data=answer)
    assert (opened.status_code, browser_client.location_of(opened)) == (303, "/messages")
    _, session = await sessions.authenticate(ctx, opened.cookies[cookies.SESSION])
    assert browser.user is not None
    assert (session.row.user_id, session.row.methods) == (browser.user.id, "passkey")
    assert (await nobody.get("/messages")).status_code == 200


async def test_another_site_gets_no_options_and_no_session(browser: Browser, nobody: Browser) -> None:
    authenticator = SoftwareAuthenticator(ORIGIN)
    await add(browser, authenticator)
    evil = {"Origin": "https://evil.example"}
    assert (await nobody.client.post("/login/passkey/options", data=EMPTY, headers=evil)).status_code == 403
    asked = await nobody.client.post("/login/passkey/options", data=EMPTY)
    answer = {"answer": authenticator.get(asked.json())}
    assert (await nobody.client.post("/login/passkey", data=answer, headers=evil)).status_code == 403


async def test_strangers_who_fail_again_and_again_wait(
    browser: Browser, nobody: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit = login_rules.FailureLimit(free=3, interval=60 * times.SECOND)
    monkeypatch.setattr(login_rules, "of_network", lambda _address: {login_rules.Counter("net", None): limit})
    authenticator = SoftwareAuthenticator(ORIGIN)
    await add(browser, authenticator)
    statuses = []
    for credential_id in (None, b"unknown", b"unknown", None, b"unknown", None):
        asked = await nobody.client.post("/login/passkey/options", data=EMPTY)
        answer = authenticator.get(asked.json(), credential_id=credential_id)
        statuses.append((await nobody.client.post("/login/passkey", data={"answer": answer})).status_code)
    # A login that succeeds costs nothing.
    assert statuses == [303, 400, 400, 303, 400, 429]


async def test_a_disabled_user_does_not_get_in_with_a_passkey(
    browser: Browser, member: Browser, nobody: Browser
) -> None:
    authenticator = SoftwareAuthenticator(ORIGIN)
    await add(member, authenticator)
    assert member.user is not None
    assert (await browser.post(f"/team/{member.user.id}/disable")).status_code == 303
    asked = await nobody.client.post("/login/passkey/options", data=EMPTY)
    refused = await nobody.client.post("/login/passkey", data={"answer": authenticator.get(asked.json())})
    assert cookies.SESSION not in refused.cookies
    assert (await nobody.get("/messages")).headers["location"].startswith("/login")


async def test_a_passkey_is_removed_and_no_longer_opens_anything(browser: Browser, nobody: Browser) -> None:
    authenticator = SoftwareAuthenticator(ORIGIN)
    page = (await add(browser, authenticator)).text
    path = page.partition('action="/profile/passkeys/psk_')[2].partition('"')[0]
    removed = await browser.post(f"/profile/passkeys/psk_{path}")
    assert browser_client.notice_of(removed) == "Passkey removed: Laptop. Remove it from your device, too."
    asked = await nobody.client.post("/login/passkey/options", data=EMPTY)
    refused = await nobody.client.post("/login/passkey", data={"answer": authenticator.get(asked.json())})
    assert refused.status_code == 400


async def test_passkeys_are_added_and_removed_after_a_confirmation_only(
    browser: Browser, clock: contexts.Clock
) -> None:
    authenticator = SoftwareAuthenticator(ORIGIN)
    clock.pass_seconds(15 * 60)
    for path in ("/profile/passkeys/options", "/profile/passkeys/psk_1/remove"):
        assert (await browser.post(path)).status_code == 403
    refused = await browser.post("/profile/passkeys", {"name": "Laptop", "answer": authenticator.id.hex()})
    assert refused.status_code == 403


async def test_after_the_password_a_passkey_is_the_second_factor(
    ctx: context.Context, browser: Browser, nobody: Browser
) -> None:
    authenticator = SoftwareAuthenticator(ORIGIN, verifies=False)
    await add(browser, authenticator)
    form = {"email": "owner@mine.example", "password": contexts.PASSWORD, "next": "/messages"}
    asked = await nobody.client.post("/login", data=form)
    assert browser_client.location_of(asked) == "/login/second-factor"
    page = await nobody.get(asked.headers["location"])
    assert "Use a passkey" in page.text
    assert "One of your recovery codes." in page.text
    options = (await nobody.client.post("/login/second-factor/passkey/options", data=EMPTY)).json()
    assert (len(options["allowCredentials"]), options["userVerification"]) == (1, "preferred")
    # A passkey without verification is no whole login.
    answer = {"answer": authenticator.get(options), "next": "/messages"}
    assert (await nobody.client.post("/login/passkey", data=answer)).status_code == 400
    options = (await nobody.client.post("/login/second-factor/passkey/options", data=EMPTY)).json()
    answer = {"answer": authenticator.get(options), "next": "/messages"}
    opened = await nobody.client.post("/login/second-factor/passkey", data=answer)
    assert (opened.status_code, browser_client.location_of(opened)) == (303, "/messages")
    _, session = await sessions.authenticate(ctx, opened.cookies[cookies.SESSION])
    assert session.row.methods == "password passkey"


async def test_without_a_right_password_no_second_factor_is_asked_for(browser: Browser, nobody: Browser) -> None:
    await add(browser, SoftwareAuthenticator(ORIGIN))
    refused = await nobody.client.post("/login/second-factor/passkey/options", data=EMPTY)
    assert refused.status_code == 401
