"""A form that is refused, in a browser: said where it is, in the words of its labels, and what was typed stays."""

from playwright import async_api

from tests.browser import axe, dev_service, logins, page_monitor
from tests.browser.conftest import Opener

expect = async_api.expect
REFUSED = r"^console: Failed to load resource: .* 40[01] "


async def test_a_refusal_stands_behind_its_field_and_names_it_as_the_page_does(
    open_page: Opener, dev: dev_service.DevService, monitor: page_monitor.PageMonitor
) -> None:
    monitor.expect(REFUSED)
    _, login = await dev.new_account()
    page = await open_page(login)
    await page.goto("/profile")
    current = page.get_by_label("Current password")
    await current.fill("not this one")
    await page.get_by_label("New password").fill("a sentence for you")
    await page.get_by_role("button", name="Change password").click()
    refusal = page.locator("form[action='/profile/password'] [role=alert]")
    await expect(refusal).to_have_text("Current password: incorrect")
    await expect(current).to_be_focused()
    await expect(current).to_have_attribute("aria-invalid", "true")
    await axe.check(page, rules=axe.ALL_RULES)
    await current.fill("x" * 2000)
    await page.get_by_role("button", name="Change password").click()
    await expect(refusal).not_to_contain_text("wrong")
    await expect(refusal).to_have_count(1)


async def test_only_a_fault_of_the_service_is_told_with_its_request_id(
    open_page: Opener, dev: dev_service.DevService, monitor: page_monitor.PageMonitor
) -> None:
    monitor.expect(r" 503 ")
    _, login = await dev.new_account()
    page = await open_page(login)
    await page.goto("/suppressions")
    refused = {"error": "the service is busy", "code": "unavailable", "request_id": "req_1"}
    await page.route(
        "**/suppressions", lambda route: route.fulfill(status=503, json=refused, headers={"X-Request-ID": "req_1"})
    )
    await page.get_by_role("button", name="Suppress an address").click()
    await page.locator("form[action='/suppressions'][method=post] input[name=email]").fill("ada@example.net")
    await page.get_by_role("button", name="Suppress", exact=True).click()
    await expect(page.get_by_role("alert")).to_have_text("The service is busy. Request ID: req_1")


async def test_a_refusal_that_names_no_field_leaves_the_focus_on_the_button(
    open_page: Opener, dev: dev_service.DevService, monitor: page_monitor.PageMonitor
) -> None:
    monitor.expect(REFUSED)
    _, login = await dev.new_account()
    page = await open_page(login, width=390, height=844)
    await page.goto("/suppressions")
    await page.get_by_role("button", name="Import").click()
    await page.get_by_label("Addresses").fill("name,address\nAda,ada@example.net")
    button = page.get_by_role("dialog").get_by_role("button", name="Import")
    await button.click()
    await expect(page.locator("form[action='/suppressions/import'] [role=alert]")).to_be_in_viewport()
    await expect(button).to_be_focused()
    await expect(page.get_by_label("Addresses")).to_have_value("name,address\nAda,ada@example.net")


async def test_a_form_whose_session_is_over_is_sent_again_after_a_log_in_elsewhere(
    open_page: Opener, dev: dev_service.DevService, monitor: page_monitor.PageMonitor
) -> None:
    monitor.expect(REFUSED)
    _, login = await dev.new_account(domain=False)
    page = await open_page(login)
    await page.goto("/domains")
    await page.context.clear_cookies()
    await page.get_by_label("Domain", exact=True).fill("kept.example")
    button = page.get_by_role("button", name="Add domain")
    await button.click()
    await expect(page.get_by_role("alert")).to_contain_text("Your session has expired, and nothing was changed.")
    async with page.context.expect_page() as opened:
        await page.get_by_role("link", name="Log in in a new tab").click()
    elsewhere = await opened.value
    await logins.log_in(elsewhere, login)
    await elsewhere.close()
    await button.click()
    await page.wait_for_url("**/domains/dom_*")
    await expect(page.get_by_role("heading", name="kept.example", exact=False).first).to_be_visible()


async def test_a_form_of_one_user_is_not_sent_for_another(
    open_page: Opener, dev: dev_service.DevService, monitor: page_monitor.PageMonitor
) -> None:
    monitor.expect(r"^console: Failed to load resource: .* 40[013] ")
    _, login = await dev.new_account(domain=False)
    _, other = await dev.new_account(domain=False)
    page = await open_page(login)
    await page.goto("/domains")
    await page.context.clear_cookies()
    await page.get_by_label("Domain", exact=True).fill("kept.example")
    button = page.get_by_role("button", name="Add domain")
    await button.click()
    await expect(page.get_by_role("alert")).to_contain_text("Your session has expired")
    elsewhere = await page.context.new_page()
    await logins.log_in(elsewhere, other)
    await elsewhere.close()
    await button.click()
    await expect(page.get_by_role("alert")).to_contain_text("form has expired")
