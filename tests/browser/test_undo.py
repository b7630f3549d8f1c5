"""The notice of what was done can undo it: with the mouse, by the keyboard, and without scripts."""

from playwright import async_api

from postroad.services.suppressions import suppression_list as suppressions
from tests.browser import axe, dev_service, logins, questions
from tests.browser.conftest import Opener

expect = async_api.expect
EMAIL = "ada@example.net"
QUESTION = f"Remove {EMAIL} from the suppression list?"


async def test_a_removed_address_is_put_back_from_the_notice(open_page: Opener, dev: dev_service.DevService) -> None:
    account, login = await dev.new_account()
    await suppressions.add(dev.ctx, account.id, EMAIL, reason="asked by telephone")
    page = await open_page(login)
    await page.goto("/suppressions")
    row = page.get_by_role("row").filter(has_text=EMAIL)
    toast = page.locator(".toast")
    await row.get_by_role("button", name="Remove").click()
    await questions.agree(page, QUESTION)
    await expect(toast).to_contain_text(f"{EMAIL} is no longer suppressed.")
    await expect(row).to_have_count(0)
    await axe.check(page, rules=axe.ALL_RULES)
    await toast.get_by_role("button", name="Undo").click()
    await expect(row).to_contain_text("asked by telephone")
    await expect(toast).to_have_text(f"{EMAIL} is suppressed again.")
    # The notice has the focus, and its button is the next one.
    await row.get_by_role("button", name="Remove").click()
    await questions.agree(page, QUESTION)
    await expect(toast).to_be_focused()
    await page.keyboard.press("Tab")
    await page.keyboard.press("Enter")
    await expect(row).to_contain_text("asked by telephone")


async def test_it_is_a_form_for_browsers_without_scripts(
    browser: async_api.Browser, dev: dev_service.DevService
) -> None:
    account, login = await dev.new_account()
    session = await logins.session_of(dev, login)
    context = await browser.new_context(base_url=dev.base_url, java_script_enabled=False, storage_state=session)
    try:
        page = await context.new_page()
        await page.goto("/suppressions")
        await page.get_by_role("button", name="Suppress an address").click()
        await page.get_by_role("textbox", name="Address").fill(EMAIL)
        await page.get_by_role("button", name="Suppress", exact=True).click()
        await expect(page.get_by_text(f"{EMAIL} is suppressed.")).to_be_visible()
        await page.get_by_role("button", name="Undo").click()
        await expect(page.get_by_text(f"{EMAIL} is no longer suppressed.")).to_be_visible()
    finally:
        await context.close()
    assert await suppressions.count(dev.ctx, account.id) == 0
