"""The webhook in a browser: set, its secret shown once, tried out, and a log that is current without a reload."""

import re

from playwright import async_api

from tests.browser import axe, dev_service, questions
from tests.browser.conftest import Opener


async def test_a_webhook_is_set_tried_and_its_log_lives(open_page: Opener, dev: dev_service.DevService) -> None:
    _, login = await dev.new_account()
    page = await open_page(login)
    await page.goto("/webhook")
    await axe.check(page)
    await page.get_by_role("button", name="Use the built-in endpoint").click()
    await async_api.expect(page.get_by_text("it is not shown again")).to_be_visible()
    await async_api.expect(page.locator(".secret code")).to_have_text(re.compile("whsec_.{44}"))
    await page.get_by_role("link", name="Done").click()
    log = page.locator("#log")
    await async_api.expect(log).to_contain_text("No deliveries yet")
    other = await open_page(login)
    await other.goto("/webhook")
    await other.get_by_role("button", name="Send test event").click()
    await async_api.expect(other.get_by_text("Test event accepted.")).to_be_visible()
    await axe.check(other)
    # Without a reload.
    await async_api.expect(log).to_contain_text("webhook.test")
    await async_api.expect(log).to_contain_text("succeeded")
    await axe.check(page)
    await page.get_by_role("button", name="Create new secret").click()
    await questions.agree(page, "Create a new secret?")
    await async_api.expect(page.get_by_text("New secret created")).to_be_visible()
