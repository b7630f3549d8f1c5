"""A second factor in a real browser: set up with an authenticator app, asked for at the login, lost and recovered."""

import time
from urllib import parse

import pyotp
from playwright import async_api

from postroad.model.people import callers
from postroad.services.accounts import account_registry
from tests.browser import axe, conftest, dev_service, logins, page_monitor

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
    await expect(page.get_by_text("10 of 10 are left")).to_be_visible()

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
    await expect(other.get_by_text("second factor", exact=True)).to_be_visible()

    third = await open_page()
    await type_password(third, login)
    await third.get_by_label("Code").fill(codes[0].upper())
    await third.get_by_role("button", name="Log in").click()
    await third.wait_for_url("**/team")


async def test_whoever_lacks_a_required_factor_is_led_to_set_it_up(
    open_page: conftest.Opener, dev: dev_service.DevService
) -> None:
    account, _ = await dev.new_account()
    await account_registry.require_second_factor(dev.ctx, account.id, required=True)
    login = await dev.new_person(account.id, role=callers.Role.DEVELOPER)
    page = await open_page()
    await logins.log_in(page, login)
    await page.wait_for_url("**/profile/security")
    await expect(page.get_by_text("This account requires a second factor")).to_be_visible()
    await page.goto("/messages")
    await page.wait_for_url("**/profile/security")
    await set_up(page, login.password)
    await page.goto("/messages")
    await expect(page.get_by_role("heading", name="Messages", level=1)).to_be_visible()


async def test_an_owner_makes_a_recovery_link_for_somebody_who_lost_the_device(
    open_page: conftest.Opener, dev: dev_service.DevService
) -> None:
    account, owner = await dev.new_account()
    login = await dev.new_person(account.id, role=callers.Role.DEVELOPER)
    lost = await open_page(login)
    await lost.goto("/profile/security")
    await set_up(lost, login.password)

    page = await open_page(owner)
    await page.goto("/team")
    await page.get_by_label(f"Manage {login.email}").click()
    page.on("dialog", lambda dialog: dialog.accept())
    await page.get_by_role("button", name=f"Recovery link for {login.email}").click()
    link = await page.get_by_role("group", name="Link").locator("code").inner_text()

    recovered = await open_page()
    # The settings of the test name no port; a browser knows only the right one.
    await recovered.goto(parse.urlsplit(link).path)
    await recovered.get_by_label("Password").fill("a new sentence for you")
    await recovered.get_by_role("button", name="Set password and log in").click()
    await recovered.wait_for_url(lambda url: "/password/" not in url)
    await recovered.goto("/profile/security")
    await expect(recovered.get_by_role("button", name="Set up an app")).to_be_visible()
