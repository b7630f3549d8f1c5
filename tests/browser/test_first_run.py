"""The way of a new owner: from the log-in to a delivered mail and its webhook, without reading anything."""

from playwright import async_api

from postroad.model.people import callers
from postroad.services.domains import domain_registry as domains
from postroad.services.webhooks import endpoint_settings, endpoints
from tests.browser import axe, dev_service, logins, page_monitor
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


async def test_the_webhook_is_seen_with_the_built_in_endpoint(open_page: Opener, dev: dev_service.DevService) -> None:
    _, login = await dev.new_account()
    page = await open_page(login)
    await page.goto("/welcome")
    await page.get_by_label("Also show its webhook").uncheck()
    await page.get_by_role("button", name="Send a test").click()
    await expect(page.locator("#test-result")).to_contain_text("Delivered to")
    await page.get_by_role("button", name="Use the built-in endpoint").click()
    await expect(page.locator(".secret-box code")).to_contain_text("whsec_")
    await page.get_by_role("button", name="Send a test for the webhook").click()
    await expect(page.locator("#webhook-result")).to_contain_text("email.delivered")
    await expect(page.locator("#webhook-result")).to_contain_text("responded 204")
    await expect(page.locator("#webhook-head")).to_contain_text("succeeded")
    await axe.check(page)


async def test_a_webhook_that_takes_mail_from_one_domain_is_seen_with_a_test_from_there(
    open_page: Opener, dev: dev_service.DevService
) -> None:
    account, login = await dev.new_account()
    await domains.add(dev.ctx, account.id, "filtered.example", verified=True)
    page = await open_page(login)
    await page.goto("/welcome")
    other = await page.get_by_label("From").input_value()
    await page.get_by_role("button", name="Use the built-in endpoint").click()
    await expect(page.locator(".secret-box code")).to_contain_text("whsec_")
    webhook = await endpoints.find(dev.ctx, account.id)
    assert webhook is not None
    only = endpoint_settings.Changes(sender_domains=["filtered.example"])
    await endpoints.change(dev.ctx, account.id, webhook.id, only)
    await page.goto("/welcome")
    await expect(page.get_by_label("From")).to_have_value("hello@filtered.example")
    await page.get_by_label("From").select_option(other)
    await page.get_by_role("button", name="Send a test", exact=True).click()
    result = page.locator("#webhook-result")
    await expect(result).to_contain_text("This webhook only gets events for mail sent from filtered.example.")
    await axe.check(page)
    await page.get_by_role("button", name="Send a test from that domain").click()
    await expect(page.locator("#webhook-result")).to_contain_text("responded 204")
    await expect(page.locator("#webhook-head")).to_contain_text("succeeded")


async def test_a_test_that_bounces_says_why(open_page: Opener, dev: dev_service.DevService) -> None:
    _, login = await dev.new_account()
    page = await open_page(login)
    await page.goto("/welcome")
    await page.get_by_label("To").fill("bounce@example.net")
    await page.get_by_role("button", name="Send a test").click()
    await expect(page.locator("#test-result")).to_contain_text("Not delivered to bounce@example.net")
    await expect(page.locator("#test-result")).to_contain_text("The mailbox does not exist")


async def test_what_is_refused_is_said_on_the_page_with_the_request_id(
    open_page: Opener, dev: dev_service.DevService, monitor: page_monitor.PageMonitor
) -> None:
    monitor.expect(r"^console: Failed to load resource: .* 400 ")
    _, login = await dev.new_account()
    page = await open_page(login)
    await page.goto("/welcome")
    await page.get_by_label("To").fill("ada@localhost")
    await page.get_by_role("button", name="Send a test").click()
    await expect(page.get_by_role("alert")).to_contain_text("To: ")
    await expect(page.get_by_label("To")).to_have_value("ada@localhost")


async def test_without_a_domain_the_first_step_leads_to_one(open_page: Opener, newcomer: dev_service.Login) -> None:
    page = await open_page(newcomer)
    await page.goto("/welcome")
    await page.locator("main").get_by_role("link", name="Add a domain").click()
    await page.wait_for_url("**/domains")


async def test_a_reader_sees_the_result_and_no_forms(open_page: Opener, dev: dev_service.DevService) -> None:
    account, login = await dev.new_account()
    reader = await dev.new_person(account.id, role=callers.Role.READ_ONLY)
    page, readers = await open_page(login), await open_page(reader)
    await readers.goto("/welcome")
    await expect(readers.locator("main form:not([data-zone-offer])")).to_have_count(0)
    await page.goto("/welcome")
    await page.get_by_role("button", name="Send a test").click()
    await expect(readers.locator("#test-result")).to_contain_text("Delivered to")
