"""What a page costs: how much is fetched for it, compressed, and how often."""

import contextlib
from collections.abc import Sequence
from typing import Final
from urllib import parse

import pytest
from playwright import async_api

from tests.browser import dev_service, logins, page_monitor, pages
from tests.browser.conftest import Opener
from tests.browser.pages import PAGES, Page
from tests.browser.test_live import open_shop

KILOBYTE: Final = 1_000
# Of the first page that a browser opens here, with styles, scripts and fonts; half of it is kept for all others.
MAX_BYTES: Final = 135 * KILOBYTE
# The page, its style, scripts, icon and fonts. Pictures of templates come besides, once they are near.
MAX_REQUESTS: Final = 8
# With two previews and what checks the template.
MAX_EDITOR_REQUESTS: Final = 9

# What came from the service, and not from the cache.
FETCHED_FILES: Final = """() => performance.getEntriesByType("resource")
  .filter((one) => one.transferSize > 0 && one.name.includes("/assets/")).map((one) => one.name)"""
# The first line of a stream.
TOLD: Final = """async (address) => {
  const reader = (await fetch(address)).body.getReader();
  const { value } = await reader.read();
  await reader.cancel();
  return new TextDecoder().decode(value).split("\\n")[0];
}"""


def traffic_of(tab: async_api.Page) -> Sequence[async_api.Request]:
    """What the tab fetches from now on."""
    finished: list[async_api.Request] = []

    def note(request: async_api.Request) -> None:
        finished.append(request)

    tab.on("requestfinished", note)
    return finished


def paths_of(requests: Sequence[async_api.Request]) -> list[str]:
    return [parse.urlsplit(request.url).path for request in requests]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
async def test_a_page_is_light_for_a_browser_that_was_never_here(
    page: Page, open_page: Opener, dev: dev_service.DevService, monitor: page_monitor.PageMonitor
) -> None:
    if page.status >= 400:
        monitor.expect(rf"^console: Failed to load resource: .* {page.status} ")
    tab = await open_page(None if page.as_visitor else dev.login)
    look = logins.viewing(dev, tab.context, dev.account.id) if page.in_view else contextlib.nullcontext()
    requests = traffic_of(tab)
    async with look:
        await tab.goto(pages.path_of(page, dev))
    has_editor = page.name == "template"
    sizes = {request.url: (await request.sizes())["responseBodySize"] for request in requests}
    assert 0 < sum(sizes.values()) <= MAX_BYTES, sizes
    fetched = [path for path in paths_of(requests) if not path.endswith("/picture")]
    assert len(fetched) <= (MAX_EDITOR_REQUESTS if has_editor else MAX_REQUESTS), sizes
    for request in requests:
        response = await request.response()
        assert response is not None
        if response.status == 200 and not parse.urlsplit(request.url).path.endswith(
            (".woff2", "/preview", "/picture", "/html")
        ):
            assert response.headers["content-encoding"] == "gzip", request.url


async def test_the_next_page_fetches_nothing_that_it_shares_with_the_first(
    open_page: Opener, dev: dev_service.DevService
) -> None:
    tab = await open_page(dev.login)
    await tab.goto("/domains")
    assert len(await tab.evaluate(FETCHED_FILES)) == 6
    await tab.get_by_role("link", name="Credits", exact=True).click()
    await async_api.expect(tab.get_by_role("heading", name="Credits", level=1)).to_be_visible()
    assert await tab.evaluate(FETCHED_FILES) == []


@pytest.mark.parametrize("path", ["/", "/messages", "/failures", "/welcome", "/tail"])
async def test_a_live_page_is_fetched_again_only_when_something_has_changed(
    open_page: Opener, dev: dev_service.DevService, path: str
) -> None:
    shop, login = await open_shop(dev)
    tab = await open_page(login)
    requests = traffic_of(tab)
    async with tab.expect_request(lambda request: parse.urlsplit(request.url).path == "/live"):
        await tab.goto(path)
    # A second stream is told what the first one was: that nothing has happened since.
    since = await tab.locator("body").get_attribute("data-fingerprint")
    assert since
    told = await tab.evaluate(TOLD, arg=f"/live?since={since}")
    assert told == ":"
    assert paths_of(requests).count(path) == 1
    async with tab.expect_request_finished(lambda request: parse.urlsplit(request.url).path == path):
        await shop.send()
