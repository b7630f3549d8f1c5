"""What holds for every page: it opens without an error, has its landmarks, fits a phone, and anybody can use it."""

import contextlib

import pytest
from playwright import async_api

from tests.browser import axe, dev_service, logins, page_monitor, pages
from tests.browser.conftest import SharedPageOpener
from tests.browser.pages import PAGES, Page
from tests.reliability import profile

# What sticks out to the right of the window, when the whole document can be scrolled that way.
STICKING_OUT = """() => {
  const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth <= width) return [];
  const out = [...document.body.querySelectorAll("*")].filter(one => one.getBoundingClientRect().right > width);
  return [`${document.documentElement.scrollWidth} px are wider than ${width} px`,
    ...out.slice(0, 8).map(one => one.outerHTML.slice(0, 120))];
}"""
# An account that has nothing yet has no things to open, and is greeted where others see their figures.
OF_NEWCOMERS = [
    page
    for page in PAGES
    if not (page.is_of_a_thing or page.is_for_operators or page.as_visitor or page.name == "error")
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
async def test_a_page_is_valid_and_accessible_in_light_and_dark_on_desktop_and_phone(
    page: Page, open_shared_page: SharedPageOpener, dev: dev_service.DevService, monitor: page_monitor.PageMonitor
) -> None:
    if page.status >= 400:
        monitor.expect(rf"^console: Failed to load resource: .* {page.status} ")
    tab = await open_shared_page(None if page.as_visitor else dev.login)
    look = logins.viewing(dev, tab.context, dev.account.id) if page.in_view else contextlib.nullcontext()
    async with look:
        await check(tab, page, dev)


async def check(tab: async_api.Page, page: Page, dev: dev_service.DevService) -> None:
    """Open the page, and look at it in each way."""
    await opened(tab, pages.path_of(page, dev), status=page.status)
    # Some of it comes a moment later, when the page refreshes itself.
    await async_api.expect(tab.locator("main")).to_contain_text(
        pages.text_of(page, dev), ignore_case=True, use_inner_text=True
    )
    if page.is_inside:
        await async_api.expect(tab.get_by_role("navigation").first).to_be_attached()
    light = await tab.evaluate("getComputedStyle(document.body).backgroundColor")
    await axe.check(tab, rules=axe.ALL_RULES)
    await tab.emulate_media(color_scheme="dark")
    assert await tab.evaluate("getComputedStyle(document.body).backgroundColor") != light
    # In `make test` the pages of newcomers are the dark ones.
    if profile.IS_LONG:
        await axe.check(tab, rules=axe.COLOUR_RULES)
    await tab.set_viewport_size({"width": 390, "height": 844})
    sticking_out = await tab.evaluate(STICKING_OUT)
    assert not sticking_out, "\n".join(sticking_out)
    await axe.check(tab, rules=axe.WIDTH_RULES)


@pytest.mark.parametrize("page", OF_NEWCOMERS, ids=lambda page: page.name)
async def test_a_page_of_an_account_that_has_nothing_yet_is_sound_too(
    page: Page, open_shared_page: SharedPageOpener, newcomer: dev_service.Login
) -> None:
    tab = await open_shared_page(newcomer)
    await tab.emulate_media(color_scheme="dark")
    await opened(tab, page.path, status=200)
    # In `make test` what does not depend on the colours is checked where the page is full.
    await axe.check(tab, rules=axe.ALL_RULES if profile.IS_LONG else axe.COLOUR_RULES)


async def opened(tab: async_api.Page, path: str, *, status: int) -> None:
    """Open the page, and look at what every page has."""
    answer = await tab.goto(path)
    assert answer is not None
    assert answer.status == status
    await async_api.expect(tab.locator("html")).to_have_attribute("lang", "en")
    await async_api.expect(tab.locator("h1")).to_have_count(1)
    assert (await tab.locator("h1").inner_text()).strip()
    await async_api.expect(tab.get_by_role("main")).to_have_count(1)
    assert await tab.title() not in {"", "Postroad"}
