"""Typing in a real browser: whatever field of whatever page has the focus gets every key, also those of shortcuts."""

import contextlib
from typing import Any, Final

from playwright import async_api

from tests.browser import dev_service, logins, page_monitor, pages
from tests.browser.conftest import Opener

# The keys that do something outside of fields (assets/keyboard.js), and how people write them.
SHORTCUTS: Final = "/?jk"
TYPED: Final = "</p> {{/items}} black jacket? g m c"
# Fields in which a person writes text; in the others only some keys have an effect.
WRITTEN: Final = frozenset({"text", "search", "url", "password", "tel", "textarea"})
FIELDS: Final = "input, textarea, select"
DESCRIBED: Final = """(fields) => fields.map((field) => ({
  type: field.type,
  name: field.name || field.ariaLabel,
  asked: Boolean(field.closest("dialog")),
  max: field.maxLength > 0 ? field.maxLength : null,
  usable: field.checkVisibility({ visibilityProperty: true }) && !field.disabled && !field.readOnly
    && !["checkbox", "radio", "file"].includes(field.type),
}))"""
UNFOLDED: Final = """() => {
  document.querySelectorAll("details").forEach((one) => { one.open = true; });
  document.querySelectorAll("[role=tabpanel]").forEach((one) => { one.hidden = false; });
}"""
VALUE: Final = "(field) => field.value"
# What opens a dialog with a form.
OPENERS: Final = "main button[popovertarget]:not([popovertargetaction]):visible"
# The same document with the same field, and nothing in front of it.
UNDISTURBED: Final = """(field) => document.activeElement === field
  && [...document.querySelectorAll("dialog[open]")].every((one) => one.contains(field))"""


async def type_into_all(tab: async_api.Page, where: str) -> list[tuple[str, str]]:
    """Click each field of the page and type; returns type and name of all that were typed into."""
    await tab.evaluate(UNFOLDED)
    typed = await type_into(tab, tab.locator(FIELDS), where)
    for opener in await tab.locator(OPENERS).all():
        await opener.click()
        typed += await type_into(tab, tab.locator("dialog[open]").locator(FIELDS), where)
        await tab.keyboard.press("Escape")
    return typed


async def type_into(tab: async_api.Page, found: async_api.Locator, where: str) -> list[tuple[str, str]]:
    """The same for these fields, of the page or of its open dialog."""
    described: list[dict[str, Any]] = await found.evaluate_all(DESCRIBED)
    handles = await found.element_handles()
    typed = []
    # From the last to the first: what is written in a template changes the fields of test values that follow.
    for handle, field in reversed([*zip(handles, described, strict=True)]):
        if not field["usable"]:
            continue
        what = f"{where}: {field['type']} {field['name']}"
        if field["type"] == "select-one":
            await handle.focus()
        else:
            await handle.click()
            await tab.keyboard.press("Control+a")
            await tab.keyboard.press("Delete")
        await tab.keyboard.type(TYPED if field["type"] in WRITTEN else SHORTCUTS)
        if field["type"] in WRITTEN:
            assert await handle.evaluate(VALUE) == TYPED[: field["max"]], what
        # It closes a dialog.
        if not field["asked"]:
            await tab.keyboard.press("Escape")
        assert await handle.evaluate(UNDISTURBED), what
        typed.append((field["type"], field["name"]))
    return typed


async def test_every_field_of_every_page_gets_every_key(
    open_page: Opener, dev: dev_service.DevService, monitor: page_monitor.PageMonitor
) -> None:
    monitor.expect(r"^console: Failed to load resource: .* 40\d ")
    visitor, tab = await open_page(), await open_page(dev.login)
    # Whoever leaves a template is asked about what is not saved; while typing, nobody is asked anything.
    tab.on("dialog", lambda dialog: dialog.accept())
    typed: dict[str, list[tuple[str, str]]] = {}
    for page in pages.PAGES:
        at = visitor if page.as_visitor else tab
        look = logins.viewing(dev, at.context, dev.account.id) if page.in_view else contextlib.nullcontext()
        async with look:
            await at.goto(pages.path_of(page, dev))
            begun = at.url
            typed[page.name] = await type_into_all(at, page.name)
            assert at.url == begun, page.name
    assert {("textarea", "html"), ("textarea", "text"), ("text", "subject")} <= set(typed["template"])
    assert {("text", "name"), ("select-one", "mode")} <= set(typed["keys"])


async def test_the_palette_gets_every_key(page: async_api.Page) -> None:
    await page.goto("/domains")
    await page.keyboard.press("Control+k")
    await page.keyboard.type(TYPED)
    await async_api.expect(page.locator("dialog[open] input")).to_have_value(TYPED)
