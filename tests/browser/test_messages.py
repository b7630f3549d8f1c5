"""The list of messages in a real browser: the search box, its keys, its help, and mail that appears by itself."""

import re

from playwright import async_api

from tests.browser import dev_service, sent_messages
from tests.browser.conftest import Opener

expect = async_api.expect


# The rows whose whole height is in the window.
VISIBLE_ROWS = """() => [...document.querySelectorAll(".messages tbody tr")]
    .filter((row) => row.getBoundingClientRect().bottom <= 900).length"""


async def test_a_search_is_typed_and_sent_with_the_keyboard_alone(page: async_api.Page) -> None:
    await page.goto("/messages")
    assert await page.evaluate(VISIBLE_ROWS) >= 18
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


async def test_on_a_phone_the_list_begins_in_the_upper_half(page: async_api.Page) -> None:
    await page.set_viewport_size({"width": 390, "height": 844})
    await page.goto("/messages")
    first = await page.locator(".messages tbody tr").first.bounding_box()
    assert first is not None
    assert first["y"] < 422
    await page.get_by_role("link", name="Last 7 days", exact=True).click()
    await expect(page.get_by_role("searchbox")).to_have_value("after:7d")


async def test_a_new_message_appears_by_itself(open_page: Opener, dev: dev_service.DevService) -> None:
    account, login = await dev.new_account()
    page = await open_page(login)
    await page.goto("/messages")
    await expect(page.get_by_role("heading", name="No messages yet")).to_be_visible()
    await sent_messages.send(dev, account.id, subject="Here by itself")
    await expect(page.get_by_role("link", name="Here by itself")).to_be_visible()
    await expect(page.locator(".status-delivered")).to_be_visible()
