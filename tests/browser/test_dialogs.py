"""Forms in dialogs: what opens and closes them, with scripts and without."""

from playwright import async_api

from tests.browser import axe, dev_service, logins, page_monitor
from tests.browser.conftest import Opener

expect = async_api.expect


async def test_a_form_in_a_dialog_keeps_what_was_typed_and_gives_the_focus_back(
    open_page: Opener, dev: dev_service.DevService, monitor: page_monitor.PageMonitor
) -> None:
    monitor.expect(r"^console: Failed to load resource: .* 400 ")
    _, login = await dev.new_account()
    page = await open_page(login)
    await page.goto("/keys")
    opener = page.get_by_role("button", name="New API key")
    await opener.focus()
    await page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name="New API key")
    await expect(dialog.get_by_label("Name", exact=True)).to_be_focused()
    await page.keyboard.type("/jk? shop")
    await expect(dialog.get_by_role("checkbox", name="templates")).not_to_be_visible()
    await dialog.get_by_label("Custom").check()
    await expect(dialog.get_by_role("checkbox", name="templates")).to_be_visible()
    await axe.check(page)
    await dialog.get_by_role("button", name="Create API key").click()
    await expect(dialog.get_by_role("alert")).to_contain_text("must be one or more of")
    await page.keyboard.press("Escape")
    await expect(dialog).not_to_be_visible()
    await expect(opener).to_be_focused()
    await opener.click()
    await expect(dialog.get_by_label("Name", exact=True)).to_have_value("/jk? shop")
    await dialog.get_by_role("checkbox", name="templates").check()
    await dialog.get_by_role("button", name="Create API key").click()
    await expect(page.get_by_role("heading", name="API key created: /jk? shop")).to_be_visible()
    await expect(page.locator("main dd").nth(1)).to_have_text("templates")


async def test_a_link_opens_a_form_once(open_page: Opener, dev: dev_service.DevService) -> None:
    _, login = await dev.new_account()
    page = await open_page(login)
    await page.goto("/credentials#new-credential")
    dialog = page.get_by_role("dialog", name="New SMTP credential")
    await expect(dialog).to_be_visible()
    await dialog.get_by_role("button", name="Cancel").click()
    await page.reload()
    await expect(page.get_by_role("button", name="New credential")).to_be_visible()
    await expect(dialog).not_to_be_visible()


async def test_a_form_in_a_dialog_works_without_scripts(
    browser: async_api.Browser, dev: dev_service.DevService
) -> None:
    _, login = await dev.new_account()
    session = await logins.session_of(dev, login)
    context = await browser.new_context(base_url=dev.base_url, java_script_enabled=False, storage_state=session)
    try:
        page = await context.new_page()
        await page.goto("/keys")
        await page.get_by_role("button", name="New API key").click()
        await page.get_by_label("Name", exact=True).fill("plain")
        await page.get_by_role("radio", name="Read").check()
        await page.get_by_role("button", name="Cancel").click()
        await expect(page.get_by_label("Name", exact=True)).not_to_be_visible()
        await page.get_by_role("button", name="New API key").click()
        await page.get_by_role("button", name="Create API key").click()
        await expect(page.get_by_role("heading", name="API key created: plain")).to_be_visible()
        await expect(page.locator("main dd").nth(1)).to_have_text("read")
    finally:
        await context.close()
