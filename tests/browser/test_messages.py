"""The list of messages in a real browser: the search box, its keys, its help, and mail that appears by itself."""

import re

from playwright import async_api

from tests.browser import dev_service, page_monitor, sent_messages
from tests.browser.conftest import Opener

expect = async_api.expect


async def test_a_search_is_typed_and_sent_with_the_keyboard_alone(page: async_api.Page) -> None:
    await page.goto("/messages")
    await page.keyboard.press("/")
    box = page.get_by_role("searchbox")
    await expect(box).to_be_focused()
    await page.keyboard.type("invoice status:delivered")
    await page.keyboard.press("Enter")
    await page.wait_for_url(re.compile(r"\?search=invoice"))
    await expect(box).to_have_value("invoice status:delivered")
    subjects = await page.locator("td.subject a").all_inner_texts()
    assert subjects
    assert all("invoice" in subject.lower() for subject in subjects)
    # In the box it is a character like any other.
    await box.press("End")
    await box.press("/")
    await expect(box).to_have_value("invoice status:delivered/")


async def test_filters_and_help_are_a_click_away(page: async_api.Page) -> None:
    await page.goto("/messages?search=invoice")
    await page.get_by_role("link", name="Failed", exact=True).click()
    await expect(page.get_by_role("searchbox")).to_have_value("status:failed invoice")
    await expect(page.get_by_role("link", name="Failed", exact=True)).to_have_attribute("aria-current", "true")
    await page.get_by_text("Search help").click()
    await page.get_by_role("link", name="status:failed", exact=True).click()
    await expect(page.get_by_role("searchbox")).to_have_value("status:failed")


async def test_a_wrong_search_is_pointed_at(page: async_api.Page, monitor: page_monitor.PageMonitor) -> None:
    monitor.expect(r"^console: Failed to load resource: .* 400 ")
    await page.goto("/messages")
    await page.get_by_role("searchbox").fill("stauts:failed invoice")
    await page.get_by_role("button", name="Search").click()
    await expect(page.get_by_role("alert")).to_contain_text("did you mean status:")
    await expect(page.locator("mark")).to_have_text("stauts:failed")
    await expect(page.get_by_role("searchbox")).to_have_value("stauts:failed invoice")


async def test_a_new_message_appears_by_itself(open_page: Opener, dev: dev_service.DevService) -> None:
    account, login = await dev.new_account()
    page = await open_page(login)
    await page.goto("/messages")
    await expect(page.get_by_role("heading", name="No messages yet")).to_be_visible()
    await sent_messages.send(dev, account.id, subject="Here by itself")
    await expect(page.get_by_role("link", name="Here by itself")).to_be_visible()
    await expect(page.locator(".status-delivered")).to_be_visible()
