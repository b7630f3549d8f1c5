"""A second factor in a real browser: set up with an authenticator app, asked for at the login, lost and recovered."""

import time

import pyotp
from playwright import async_api

from tests.browser import axe, conftest, dev_service, page_monitor

expect = async_api.expect
STEP_SECONDS = 30


async def set_up(page: async_api.Page, password: str) -> tuple[pyotp.TOTP, list[str]]:
    """Set up an app on the page of second factors: the app, and the recovery codes."""
    await page.get_by_label("Password", exact=True).fill(password)
    await page.get_by_role("button", name="Set up an app").click()
    await expect(page.get_by_role("img", name="QR code for your authenticator app")).to_be_visible()
    await axe.check(page, rules=axe.ALL_RULES)
    secret = await page.get_by_role("group", name="Key").locator("code").inner_text()
    app = pyotp.TOTP(secret.replace(" ", ""))
    await page.get_by_label("Code", exact=True).fill(app.now())
    await page.get_by_role("button", name="Confirm").click()
    codes = page.get_by_role("group", name="Recovery codes").locator("code")
    await expect(codes).to_be_visible()
    await axe.check(page)
    return app, (await codes.inner_text()).split()


async def type_password(page: async_api.Page, login: dev_service.Login) -> None:
    await page.goto("/login?next=/team")
    await page.fill("input[name=email]", login.email)
    await page.fill("input[name=password]", login.password)
    await page.click("main button[type=submit]")
    await page.wait_for_url("**/login/second-factor?**")
    await axe.check(page)


async def test_an_app_is_set_up_and_asked_for_at_the_next_login(
    open_page: conftest.Opener, dev: dev_service.DevService, monitor: page_monitor.PageMonitor
) -> None:
    _, login = await dev.new_account()
    page = await open_page(login)
    await page.goto("/profile")
    await page.get_by_role("link", name="Authenticator app, passkeys, recovery codes").click()
    app, codes = await set_up(page, login.password)
    assert len(set(codes)) == 10
    await page.get_by_role("link", name="Done").click()
    await expect(page.get_by_text("10 of 10 left")).to_be_visible()

    other = await open_page()
    await type_password(other, login)
    # The code of the set-up is used up; the next one is accepted a step early.
    monitor.expect("401")
    await other.get_by_label("Code").fill("000000")
    await other.get_by_role("button", name="Log in").click()
    await expect(other.get_by_text("the code is wrong or was already used")).to_be_visible()
    await other.get_by_label("Code").fill(app.at(int(time.time()) + STEP_SECONDS))
    await other.get_by_role("button", name="Log in").click()
    await other.wait_for_url("**/team")
    row = other.get_by_role("row").filter(has_text=login.email)
    await expect(row.locator("td[data-label='Two-factor']")).to_have_text("yes")

    third = await open_page()
    await type_password(third, login)
    await third.get_by_label("Code").fill(codes[0].upper())
    await third.get_by_role("button", name="Log in").click()
    await third.wait_for_url("**/team")
