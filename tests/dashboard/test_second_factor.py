"""The second step of logging in: the pending login in a cookie, the code, and what leads to a session and what not."""

import re

import httpx
import pytest

from postroad import context
from postroad.dashboard.framework import cookies
from postroad.model.people import callers
from postroad.services.people import users as account_users
from tests import contexts
from tests.contexts import Clock
from tests.dashboard import browser_client
from tests.dashboard.browser_client import Browser
from tests.services.people import authenticator

LOGIN = {"email": "owner@mine.example", "password": contexts.PASSWORD}
STEP = "/login/second-factor"


@pytest.fixture
async def secret(ctx: context.Context, browser: Browser, clock: Clock) -> str:
    """The secret of the owner's app, of which no code of this moment was used."""
    assert browser.user is not None
    made, _ = await authenticator.set_up(ctx, browser.user, clock)
    clock.pass_seconds(60)
    return made


async def is_in(browser: Browser) -> bool:
    return (await browser.get("/profile")).status_code == 200


def set_cookies(response: httpx.Response) -> list[str]:
    return [field.partition("=")[0] for field in response.headers.get_list("set-cookie")]


async def test_a_right_password_leads_to_the_second_step_without_a_session(nobody: Browser, secret: str) -> None:
    answer = await nobody.client.post("/login", data=LOGIN | {"next": "/team"})
    assert (answer.status_code, answer.headers["location"]) == (303, f"{STEP}?next=%2Fteam")
    assert set_cookies(answer) == [cookies.PENDING]
    (field,) = answer.headers.get_list("set-cookie")
    assert field.endswith("; Path=/; Max-Age=300; HttpOnly; SameSite=Lax")
    assert not await is_in(nobody)
    page = await nobody.client.get(answer.headers["location"])
    assert page.status_code == 200
    assert 'name="next" value="/team"' in page.text
    assert 'autocomplete="one-time-code"' in page.text


async def test_the_code_opens_the_session_and_ends_the_pending_login(
    nobody: Browser, secret: str, clock: Clock
) -> None:
    await nobody.client.post("/login", data=LOGIN)
    token = nobody.client.cookies[cookies.PENDING]
    answer = await nobody.client.post(STEP, data={"code": authenticator.code(secret, clock), "next": "/team"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/team")
    assert set_cookies(answer) == [cookies.SESSION, cookies.PENDING]
    assert await is_in(nobody)
    # Whoever has stolen the cookie has nothing, not even with the next code.
    nobody.client.cookies.clear()
    nobody.client.cookies.set(cookies.PENDING, token)
    clock.pass_seconds(30)
    refused = await nobody.client.post(STEP, data={"code": authenticator.code(secret, clock)})
    assert refused.status_code == 401
    assert "log in again" in refused.text
    assert not await is_in(nobody)


async def test_a_wrong_code_is_a_page_with_the_sentence_and_can_be_tried_again(
    nobody: Browser, secret: str, clock: Clock
) -> None:
    await nobody.client.post("/login", data=LOGIN)
    answer = await nobody.client.post(STEP, data={"code": authenticator.wrong(secret, clock)})
    assert answer.status_code == 401
    assert "The code is wrong" in answer.text
    assert answer.headers["second-factor"] == "required"
    assert not set_cookies(answer)
    assert (await nobody.client.post(STEP, data={"code": authenticator.code(secret, clock)})).status_code == 303


@pytest.mark.parametrize("forged", [None, "x", "0" * 43, "a.b.c"])
async def test_without_a_pending_login_there_is_no_second_step(
    nobody: Browser, secret: str, clock: Clock, forged: str | None
) -> None:
    if forged is not None:
        nobody.client.cookies.set(cookies.PENDING, forged)
    shown = await nobody.client.get(STEP)
    assert (shown.status_code, shown.headers["location"]) == (303, "/login")
    answer = await nobody.client.post(STEP, data={"code": authenticator.code(secret, clock)})
    assert answer.status_code == 401
    assert not await is_in(nobody)


async def test_a_pending_login_is_no_session_and_a_session_no_pending_login(
    browser: Browser, nobody: Browser, secret: str, clock: Clock
) -> None:
    await nobody.client.post("/login", data=LOGIN)
    token = nobody.client.cookies[cookies.PENDING]
    nobody.client.cookies.clear()
    nobody.client.cookies.set(cookies.SESSION, token)
    assert not await is_in(nobody)
    assert browser.session is not None
    nobody.client.cookies.clear()
    nobody.client.cookies.set(cookies.PENDING, browser.session.token)
    answer = await nobody.client.post(STEP, data={"code": authenticator.code(secret, clock)})
    assert answer.status_code == 401


async def test_another_site_cannot_send_the_form(nobody: Browser, secret: str, clock: Clock) -> None:
    await nobody.client.post("/login", data=LOGIN)
    answer = await nobody.client.post(
        STEP, data={"code": authenticator.code(secret, clock)}, headers={"Origin": "https://evil.example"}
    )
    assert answer.status_code == 403
    assert not await is_in(nobody)


@pytest.mark.parametrize("elsewhere", ["https://evil.example/", "//evil.example"])
async def test_the_next_page_is_one_of_ours(nobody: Browser, secret: str, clock: Clock, elsewhere: str) -> None:
    await nobody.client.post("/login", data=LOGIN)
    assert 'name="next" value="/"' in (await nobody.get(STEP, next=elsewhere)).text
    answer = await nobody.client.post(STEP, data={"code": authenticator.code(secret, clock), "next": elsewhere})
    assert answer.headers["location"] == "/"


async def test_a_new_password_by_a_link_still_asks_for_the_factor(
    ctx: context.Context, browser: Browser, nobody: Browser, secret: str, clock: Clock
) -> None:
    assert browser.user is not None
    made = await account_users.create_password_link(ctx, browser.account_id, browser.user.id)
    answer = await nobody.client.post(f"/password/{made.token}", data={"password": "another long sentence"})
    assert answer.headers["location"] == f"{STEP}?next=%2F&account_id={browser.account_id}"
    assert not await is_in(nobody)
    code = {"code": authenticator.code(secret, clock), "account_id": browser.account_id}
    assert (await nobody.client.post(STEP, data=code)).headers["location"] == "/"
    assert await is_in(nobody)


async def test_a_recovery_link_lets_in_without_a_factor(
    ctx: context.Context, served: browser_client.Served, browser: Browser, nobody: Browser, secret: str
) -> None:
    boss = await browser_client.person(ctx, browser.account_id, "boss@mine.example", callers.Role.OWNER)
    async with browser_client.open_browser(ctx, served, boss) as owner:
        assert browser.user is not None
        page = await owner.post(f"/team/{browser.user.id}/recovery-link")
    assert page.status_code == 201
    assert "Recovery link for owner@mine.example" in page.text
    found = re.search(r"http://[^\s<]+(/password/[A-Za-z0-9]+)", page.text)
    assert found is not None
    answer = await nobody.client.post(found[1], data={"password": "another long sentence"})
    assert answer.headers["location"] == "/"
    assert "Set up an app" in (await nobody.get("/profile/security")).text
