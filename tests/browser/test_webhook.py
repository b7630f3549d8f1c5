"""Webhooks in a browser: created in a dialog, the secret shown once, tried out, and deliveries that need no reload."""

import re

from playwright import async_api

from postroad.services.webhooks import endpoints
from tests.browser import axe, dev_service, questions
from tests.browser.conftest import Opener


async def test_a_webhook_is_created_tried_and_its_deliveries_live(
    open_page: Opener, dev: dev_service.DevService
) -> None:
    _, login = await dev.new_account()
    page = await open_page(login)
    await page.goto("/")
    await page.get_by_role("link", name="Webhooks", exact=True).click()
    await axe.check(page)
    await page.get_by_role("button", name="New webhook").click()
    dialog = page.get_by_role("dialog", name="New webhook")
    await async_api.expect(dialog.get_by_label("URL")).to_have_value(f"{dev.base_url}/v1/inbox/webhook")
    await dialog.get_by_label("All events").check()
    await axe.check(page)
    await dialog.get_by_role("button", name="Create webhook").click()
    await async_api.expect(page.get_by_text("it is not shown again")).to_be_visible()
    await async_api.expect(page.locator(".secret code")).to_have_text(re.compile("whsec_.{44}"))
    await axe.check(page)
    await page.get_by_role("link", name="Done").click()
    log = page.locator("#log")
    await async_api.expect(log).to_contain_text("No deliveries yet")
    other = await open_page(login)
    await other.goto("/webhooks")
    await async_api.expect(other.get_by_role("cell", name="All events")).to_be_visible()
    await other.get_by_role("link", name=re.compile("inbox.webhook")).click()
    await other.get_by_role("button", name="Send test event").click()
    await async_api.expect(other.get_by_text("Test event accepted.")).to_be_visible()
    await axe.check(other)
    # Without a reload.
    await async_api.expect(log).to_contain_text("webhook.test")
    await async_api.expect(log).to_contain_text("succeeded")
    await axe.check(page)


async def test_the_events_and_domains_of_a_webhook_are_chosen(open_page: Opener, dev: dev_service.DevService) -> None:
    account, login = await dev.new_account()
    page = await open_page(login)
    await page.goto("/webhooks")
    await page.get_by_role("button", name="New webhook").click()
    dialog = page.get_by_role("dialog", name="New webhook")
    bounced = dialog.get_by_role("checkbox", name="email.bounced", exact=True)
    await async_api.expect(bounced).to_be_hidden()
    await dialog.get_by_label("URL").fill(f"{dev.base_url}/v1/inbox/webhook")
    await dialog.get_by_label("Choose").check()
    await bounced.check()
    domain = dialog.get_by_role("group", name="Sender domains").get_by_role("checkbox")
    await domain.check()
    chosen = await domain.get_attribute("value")
    await dialog.get_by_role("button", name="Create webhook").click()
    await page.get_by_role("link", name="Done").click()
    await page.get_by_role("link", name="Settings").click()
    await async_api.expect(page.get_by_role("link", name="Settings")).to_have_attribute("aria-current", "page")
    await async_api.expect(page.get_by_label("Choose")).to_be_checked()
    await async_api.expect(page.get_by_role("checkbox", name="email.bounced", exact=True)).to_be_checked()
    await axe.check(page)
    await page.get_by_label("Deliveries and failures").check()
    await page.get_by_role("button", name="Save").click()
    await async_api.expect(page.get_by_text("Webhook saved.")).to_be_visible()
    (saved,) = await endpoints.of_account(dev.ctx, account.id)
    assert (saved.events, saved.sender_domains) == ("email.delivered email.bounced email.failed", chosen)


async def test_a_new_secret_and_a_replay_are_asked_for(open_page: Opener, dev: dev_service.DevService) -> None:
    account, login = await dev.new_account()
    url = f"{dev.base_url}/v1/inbox/webhook"
    webhook = (await endpoints.save(dev.ctx, account.id, url=url)).webhook
    page = await open_page(login)
    await page.goto(f"/webhooks/{webhook.id}")
    await page.get_by_role("button", name="Send test event").click()
    await page.get_by_role("button", name="Replay").click()
    await questions.agree(page, "Send this event again, with the same ID and body?")
    await async_api.expect(page.get_by_text("This is the new delivery.")).to_be_visible()
    await page.get_by_role("link", name="Deliveries").click()
    await page.get_by_role("button", name="Replay failed events").click()
    dialog = page.get_by_role("dialog", name="Replay failed events?")
    await axe.check(page)
    await dialog.get_by_role("button", name="Replay").click()
    await async_api.expect(page.get_by_text("No events to replay")).to_be_visible()
    await page.get_by_role("link", name="Secret", exact=True).click()
    await page.get_by_label("Hours to keep the old secret valid").fill("0")
    await axe.check(page)
    await page.get_by_role("button", name="Create new secret").click()
    await questions.agree(page, "Create a new secret?")
    await async_api.expect(page.get_by_text("New secret created")).to_be_visible()


async def test_the_filter_of_deliveries_acts_at_once_and_keeps_the_focus(
    open_page: Opener, dev: dev_service.DevService
) -> None:
    page = await open_page(dev.login)
    await page.goto(f"/webhooks/{dev.demo_ids.webhook}")
    log = page.locator("#log")
    await async_api.expect(log).to_contain_text("succeeded")
    status = page.get_by_label("Status")
    await status.focus()
    await page.keyboard.press("f")
    await page.keyboard.press("Tab")
    await page.keyboard.press("Shift+Tab")
    await async_api.expect(log).not_to_contain_text("succeeded")
    await async_api.expect(log).to_contain_text("failed")
    await async_api.expect(status).to_be_focused()
    await async_api.expect(page).to_have_url(re.compile("status=failed"))
    await page.get_by_label("Message", exact=True).press_sequentially("em_1")
    await async_api.expect(log).to_contain_text("No deliveries match.")
    await async_api.expect(page.get_by_label("Message", exact=True)).to_be_focused()
    await axe.check(page)
