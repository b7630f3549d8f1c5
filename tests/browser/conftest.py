"""What browser tests share: one Chromium and one service a worker; pages are a test's own unless it only looks.

Playwright's objects belong to the event loop that made them, so all these tests run on the session's loop. Whatever a
page does that it must not do (tests/browser/page_monitor.py) fails the test that opened it, at its end.
"""

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Literal, Protocol

import pytest
import pytest_asyncio
from playwright import async_api

from tests.browser import chromium, dev_service, logins, page_monitor, skip_report

HERE = Path(__file__).parent
# A bound for a machine that is busy with other tests; a page takes a few hundredths of a second.
TIMEOUT_MILLISECONDS = 300_000
# More than a page of each list shows.
MESSAGES = 60


class Opener(Protocol):
    """Opens a page in a browser context of its own."""

    async def __call__(
        self,
        login: dev_service.Login | None = None,
        *,
        scheme: Literal["light", "dark"] = "light",
        width: int = 1280,
        height: int = 860,
    ) -> async_api.Page:
        """A blank page; with a login, in that user's session."""


class SharedPageOpener(Protocol):
    """Gives the page that tests share for one user."""

    async def __call__(self, login: dev_service.Login | None) -> async_api.Page:
        """Blank, light and as wide as a desktop."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of this folder share a loop, and so a browser."""
    for item in items:
        if item.path.is_relative_to(HERE) and pytest_asyncio.is_async_test(item):
            # Before the mark that the automatic mode has set.
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[async_api.Browser]:
    """The browser of this worker."""
    program = chromium.find()
    if program is None:
        skip_report.skip("browser tests", because="no Chromium was found", remedy=chromium.REMEDY)
    async_api.expect.set_options(timeout=TIMEOUT_MILLISECONDS)
    async with chromium.running(program) as running:
        yield running


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def dev(
    browser: async_api.Browser, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[dev_service.DevService]:
    """The service of this worker; without a browser none is started."""
    async with dev_service.running(tmp_path_factory.mktemp("service"), messages=MESSAGES) as running:
        yield running


@pytest_asyncio.fixture(loop_scope="session")
async def monitor(dev: dev_service.DevService) -> AsyncIterator[page_monitor.PageMonitor]:
    """What this test's pages do wrong; a test that provokes something says `watch.expect(...)` first."""
    monitor = page_monitor.PageMonitor(dev.base_url)
    yield monitor
    problems = monitor.problems()
    assert not problems, "\n".join(["the browser complains:", *problems])


@pytest_asyncio.fixture(loop_scope="session")
async def open_page(
    browser: async_api.Browser, dev: dev_service.DevService, monitor: page_monitor.PageMonitor
) -> AsyncIterator[Opener]:
    """As many pages as a test wants, each of its own visitor."""
    async with contextlib.AsyncExitStack() as stack:

        async def open_one(
            login: dev_service.Login | None = None,
            *,
            scheme: Literal["light", "dark"] = "light",
            width: int = 1280,
            height: int = 860,
        ) -> async_api.Page:
            context = await browser.new_context(
                base_url=dev.base_url,
                color_scheme=scheme,
                viewport={"width": width, "height": height},
                storage_state=await logins.session_of(dev, login) if login else None,
            )
            stack.push_async_callback(context.close)
            context.set_default_timeout(TIMEOUT_MILLISECONDS)
            monitor.over(context)
            return await context.new_page()

        yield open_one


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def kept(browser: async_api.Browser, dev: dev_service.DevService) -> AsyncIterator[SharedPageOpener]:
    """Pages that stay open, one for each user."""
    async with contextlib.AsyncExitStack() as stack:
        pages: dict[dev_service.Login | None, async_api.Page] = {}

        async def page_of(login: dev_service.Login | None) -> async_api.Page:
            if login not in pages:
                session = await logins.session_of(dev, login) if login else None
                context = await browser.new_context(base_url=dev.base_url, storage_state=session)
                stack.push_async_callback(context.close)
                context.set_default_timeout(TIMEOUT_MILLISECONDS)
                pages[login] = await context.new_page()
            return pages[login]

        yield page_of


@pytest_asyncio.fixture(loop_scope="session")
async def open_shared_page(
    kept: SharedPageOpener, monitor: page_monitor.PageMonitor
) -> AsyncIterator[SharedPageOpener]:
    """A page that tests share and that knows our scripts already: for those that only look, and change nothing."""
    async with contextlib.AsyncExitStack() as stack:

        async def look_as(login: dev_service.Login | None) -> async_api.Page:
            page = await kept(login)
            await page.set_viewport_size({"width": 1280, "height": 860})
            await page.emulate_media(color_scheme="light")
            monitor.over(page.context)
            stack.callback(monitor.leave, page.context)
            # The next test finds an empty page, on which nothing happens any more.
            stack.push_async_callback(page.goto, "about:blank")
            return page

        yield look_as


@pytest_asyncio.fixture(loop_scope="session")
async def visitor(open_page: Opener) -> async_api.Page:
    """A page of somebody who has not logged in."""
    return await open_page()


@pytest_asyncio.fixture(loop_scope="session")
async def page(open_shared_page: SharedPageOpener, dev: dev_service.DevService) -> async_api.Page:
    """A page of the demo account's owner, logged in; tests share it, and only look."""
    return await open_shared_page(dev.login)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def newcomer(dev: dev_service.DevService) -> dev_service.Login:
    """The owner of an account that has done nothing yet; tests only look at it."""
    _, login = await dev.new_account("New", domain=False)
    return login
