"""Domains, SMTP credentials and API keys in a browser: made, shown once, copied, revoked, and what a phone shows."""

from playwright import async_api

from tests.browser import axe, dev_service, page_monitor, questions
from tests.browser.conftest import Opener

HOSTILE = "<img src=x onerror=alert(1)> & 'shop'"


async def make_credential(page: async_api.Page, name: str) -> None:
    await page.goto("/credentials")
    await page.get_by_role("button", name="New credential").click()
    await page.get_by_label("Name").fill(name)
    await page.get_by_role("button", name="Create credential").click()
    await async_api.expect(page.get_by_text("it is not shown again")).to_be_visible()


async def test_a_credential_is_made_without_leaving_the_page_and_shown_once(
    open_page: Opener, dev: dev_service.DevService
) -> None:
    _, login = await dev.new_account()
    page = await open_page(login)
    await make_credential(page, HOSTILE)
    await axe.check(page)
    username = await page.locator("dd code").first.inner_text()
    password = await page.locator("dd code").nth(1).inner_text()
    assert username.startswith("smtp_")
    # Only the first text is open; opening another one closes it.
    await async_api.expect(page.locator(".snippets details[open]")).to_have_count(1)
    await page.locator("summary", has_text="Django").click()
    await async_api.expect(page.locator(".snippets details[open] code")).to_contain_text(password)
    await page.get_by_role("link", name="Done").click()
    await async_api.expect(page.locator("td.name")).to_contain_text(HOSTILE)
    assert password not in await page.content()


async def test_a_copy_button_copies_the_text(open_page: Opener, dev: dev_service.DevService) -> None:
    _, login = await dev.new_account()
    page = await open_page(login)
    await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await make_credential(page, "shop")
    await page.locator(".snippets details[open] .copy-button").click()
    await async_api.expect(page.get_by_role("button", name="Copied")).to_be_visible()
    copied = await page.evaluate("navigator.clipboard.readText()")
    assert copied == await page.locator(".snippets details[open] code").inner_text()


async def add_domain(page: async_api.Page) -> None:
    await page.goto("/domains")
    await page.get_by_label("Domain", exact=True).fill("added.example")
    await page.get_by_role("button", name="Add domain").click()


async def test_a_domain_is_added_and_a_second_one_of_the_name_is_refused_where_the_form_is(
    open_page: Opener, dev: dev_service.DevService, monitor: page_monitor.PageMonitor
) -> None:
    monitor.expect(r"^console: Failed to load resource: .* 409 ")
    _, login = await dev.new_account(domain=False)
    page = await open_page(login)
    await add_domain(page)
    await page.wait_for_url("**/domains/dom_*")
    await async_api.expect(page.locator("table.records tbody tr")).to_have_count(5)
    await axe.check(page)
    await add_domain(page)
    await async_api.expect(page.get_by_role("alert")).to_contain_text("is already registered by this account")
    await page.get_by_role("link", name="added.example").click()
    await page.get_by_role("button", name="Remove added.example").click()
    await axe.check(page)
    await questions.agree(page, "Remove added.example?")
    await async_api.expect(page.get_by_text("added.example removed.")).to_be_visible()
