"""The way of a new owner: from the log-in to a delivered mail and its webhook, without reading anything."""

from playwright import async_api

from tests.browser import axe, dev_service, logins
from tests.browser.conftest import Opener

expect = async_api.expect


async def test_a_new_owner_sees_a_delivered_mail_after_one_click(
    open_page: Opener, dev: dev_service.DevService
) -> None:
    _, login = await dev.new_account()
    page = await open_page()
    await logins.log_in(page, login)
    await page.get_by_role("button", name="Send a test").click()
    await page.wait_for_url("**/welcome")
    # Nobody reloads the page: it hears of the result by itself.
    await expect(page.locator("#test-result")).to_contain_text(f"Delivered to {login.email}")
    await expect(page.locator("#test-head")).to_contain_text("delivered")
    await axe.check(page)
    await page.get_by_role("link", name="Overview").click()
    await expect(page.locator("#tiles")).to_contain_text("100%")


async def test_the_same_click_shows_the_webhook_of_the_mail(open_page: Opener, dev: dev_service.DevService) -> None:
    _, login = await dev.new_account()
    page = await open_page(login)
    await page.goto("/")
    await expect(page.get_by_label("Also show its webhook")).to_be_checked()
    await page.get_by_role("button", name="Send a test").click()
    await page.wait_for_url("**/welcome")
    await expect(page.locator("#webhook-result")).to_contain_text("email.delivered")
    await expect(page.locator("#webhook-result")).to_contain_text("responded 204")
    await expect(page.locator("#webhook-head")).to_contain_text("succeeded")
    await axe.check(page)
