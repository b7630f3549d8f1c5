"""The palette and the keys in a real browser: everything is reached without a pointer, and fields keep their keys."""

import re

from playwright import async_api

from tests.browser import axe, dev_service, logins
from tests.browser.conftest import Opener

expect = async_api.expect


async def test_the_palette_opens_by_key_finds_what_is_typed_and_goes_there(
    page: async_api.Page, dev: dev_service.DevService
) -> None:
    await page.goto("/domains")
    link = page.get_by_role("link", name="Audit log")
    await link.focus()
    await page.keyboard.press("Control+k")
    field = page.get_by_role("combobox", name=re.compile("^Find"))
    await expect(field).to_be_focused()
    await expect(page.get_by_role("option", name="Send a test message")).to_have_attribute("aria-selected", "true")
    await axe.check(page)
    await page.keyboard.press("ArrowDown")
    await expect(page.get_by_role("option", name="Create an API key")).to_have_attribute("aria-selected", "true")
    await page.keyboard.press("ArrowUp")
    await page.keyboard.press("ArrowUp")
    await expect(page.get_by_role("option").last).to_have_attribute("aria-selected", "true")
    await field.fill("stauts:x")
    await expect(page.get_by_role("status").filter(has_text="Nothing matches.")).to_be_visible()
    await axe.check(page)
    await page.keyboard.press("Escape")
    await expect(field).to_be_hidden()
    await expect(link).to_be_focused()
    # A page without a search of its own has this one; Enter does not wait for the list.
    await page.keyboard.press("/")
    await page.keyboard.type(dev.demo_ids.message[:14])
    await page.keyboard.press("Enter")
    await page.wait_for_url("**/messages/em_*")
    assert dev.demo_ids.message[:14] in page.url


async def test_rows_are_walked_by_key_and_opened(page: async_api.Page) -> None:
    await page.goto("/messages")
    rows = page.locator("#list tbody a.row-link")
    await page.keyboard.press("j")
    await expect(rows.nth(0)).to_be_focused()
    await page.keyboard.press("j")
    await page.keyboard.press("j")
    await page.keyboard.press("k")
    await expect(rows.nth(1)).to_be_focused()
    path = await rows.nth(1).get_attribute("href")
    # A field has its keys for itself.
    box = page.get_by_role("searchbox")
    await page.keyboard.press("/")
    await page.keyboard.type("j/k?")
    await expect(box).to_have_value("j/k?")
    await rows.nth(1).focus()
    await page.keyboard.press("Enter")
    await page.wait_for_url(f"**{path}")


async def test_the_palette_does_what_is_chosen(page: async_api.Page, dev: dev_service.DevService) -> None:
    await page.goto("/domains")
    for word, scheme in (("theme", "dark"), ("switch", "light")):
        await page.keyboard.press("Control+k")
        await page.keyboard.type(word)
        await expect(page.get_by_role("option", name="Switch theme")).to_have_attribute("aria-selected", "true")
        await page.keyboard.press("Enter")
        await expect(page.locator("html")).to_have_attribute("data-theme", scheme)
    await page.keyboard.press("Control+k")
    await page.keyboard.type("create key")
    await page.get_by_role("option", name="Create an API key").click()
    await expect(page.get_by_role("dialog").get_by_label("Name")).to_be_visible()
    await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await page.goto(f"/messages/{dev.demo_ids.message}")
    await page.keyboard.press("Control+k")
    await page.keyboard.type("copy id")
    await expect(page.get_by_role("option", name="Copy message ID")).to_have_attribute("aria-selected", "true")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert await page.evaluate("navigator.clipboard.readText()") == dev.demo_ids.message


async def test_a_choice_of_the_profile_is_saved_when_it_is_made(page: async_api.Page) -> None:
    await page.goto("/profile")
    await expect(page.get_by_role("button", name="Save", exact=True)).to_be_hidden()
    await page.get_by_role("radio", name="The bounce guard warns the account: Off").check()
    await expect(page.locator(".toast")).to_have_text("Saved.")
    await axe.check(page)
    await page.reload()
    await expect(page.get_by_role("radio", name="The bounce guard warns the account: Off")).to_be_checked()


async def test_the_keys_are_shown_and_can_be_turned_off(page: async_api.Page) -> None:
    await page.goto("/suppressions")
    await page.keyboard.press("?")
    dialog = page.get_by_role("dialog", name="Keyboard shortcuts")
    await expect(dialog).to_be_visible()
    await axe.check(page)
    await dialog.get_by_role("checkbox").uncheck()
    await page.keyboard.press("Escape")
    await expect(dialog).to_be_hidden()
    await page.keyboard.press("?")
    await page.keyboard.press("Control+k")
    await expect(page.get_by_role("combobox", name=re.compile("^Find"))).to_be_focused()
    await expect(dialog).to_be_hidden()
    await page.keyboard.press("Escape")
    await logins.open_account_menu(page)
    await page.get_by_role("button", name="Keyboard shortcuts").click()
    await dialog.get_by_role("checkbox").check()
    await dialog.get_by_role("button", name="Close").click()
    await page.keyboard.press("/")
    await expect(page.get_by_role("searchbox", name="Address")).to_be_focused()


async def test_the_notice_of_a_form_has_the_focus_on_this_page_and_on_another(
    open_page: Opener, dev: dev_service.DevService
) -> None:
    _, login = await dev.new_account()
    page = await open_page(login)
    await page.goto("/suppressions")
    await page.get_by_role("button", name="Suppress an address").click()
    await page.get_by_role("textbox", name="Address").fill("ada@example.net")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("status").filter(has_text="ada@example.net")).to_be_focused()
    await page.goto("/domains")
    await page.get_by_role("textbox", name="Domain").fill("new.example")
    await page.keyboard.press("Enter")
    await page.wait_for_url("**/domains/dom_*")
    await expect(page.get_by_role("status").filter(has_text="new.example added.")).to_be_focused()
    await axe.check(page)
