"""What browser tests share: one Chromium and one service a worker; pages are a test's own unless it only looks.

Playwright's objects belong to the event loop that made them, so all these tests run on the session's loop. Whatever a
page does that it must not do (tests/browser/watching.py) fails the test that opened it, at its end.
"""

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Literal, Protocol

import pytest
import pytest_asyncio
from playwright import async_api

from tests.browser import chromium, entering, houses, left_out, watching

HERE = Path(__file__).parent
# A bound for a machine that is busy with other tests; a page takes a few hundredths of a second.
PATIENCE_MILLISECONDS = 30_000
# More than a page of each list shows.
MESSAGES = 60


class Opener(Protocol):
    """Opens a page in a browser context of its own."""

    async def __call__(
        self,
        login: houses.Login | None = None,
        *,
        scheme: Literal["light", "dark"] = "light",
        width: int = 1280,
        height: int = 860,
    ) -> async_api.Page:
        """A blank page; with a login, in that person's session."""


class Looker(Protocol):
    """Gives the page that tests share for one person."""

    async def __call__(self, login: houses.Login | None) -> async_api.Page:
        """Blank, light and as wide as a desk."""


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
        left_out.leave_out("browser tests", because="no Chromium was found", remedy=chromium.REMEDY)
    async_api.expect.set_options(timeout=PATIENCE_MILLISECONDS)
    async with chromium.running(program) as running:
        yield running


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def house(browser: async_api.Browser, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[houses.House]:
    """The service of this worker; without a browser none is started."""
    async with houses.running(tmp_path_factory.mktemp("house"), messages=MESSAGES) as running:
        yield running


@pytest_asyncio.fixture(loop_scope="session")
async def watch(house: houses.House) -> AsyncIterator[watching.Watch]:
    """What this test's pages do wrong; a test that provokes something says `watch.expect(...)` first."""
    watch = watching.Watch(house.base_url)
    yield watch
    complaints = watch.complaints()
    assert not complaints, "\n".join(["the browser complains:", *complaints])


@pytest_asyncio.fixture(loop_scope="session")
async def open_page(browser: async_api.Browser, house: houses.House, watch: watching.Watch) -> AsyncIterator[Opener]:
    """As many pages as a test wants, each of its own visitor."""
    async with contextlib.AsyncExitStack() as stack:

        async def open_one(
            login: houses.Login | None = None,
            *,
            scheme: Literal["light", "dark"] = "light",
            width: int = 1280,
            height: int = 860,
        ) -> async_api.Page:
            context = await browser.new_context(
                base_url=house.base_url,
                color_scheme=scheme,
                viewport={"width": width, "height": height},
                storage_state=await entering.session_of(house, login) if login else None,
            )
            stack.push_async_callback(context.close)
            context.set_default_timeout(PATIENCE_MILLISECONDS)
            watch.over(context)
            return await context.new_page()

        yield open_one


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def kept(browser: async_api.Browser, house: houses.House) -> AsyncIterator[Looker]:
    """Pages that stay open, one for each person."""
    async with contextlib.AsyncExitStack() as stack:
        pages: dict[houses.Login | None, async_api.Page] = {}

        async def page_of(login: houses.Login | None) -> async_api.Page:
            if login not in pages:
                session = await entering.session_of(house, login) if login else None
                context = await browser.new_context(base_url=house.base_url, storage_state=session)
                stack.push_async_callback(context.close)
                context.set_default_timeout(PATIENCE_MILLISECONDS)
                pages[login] = await context.new_page()
            return pages[login]

        yield page_of


@pytest_asyncio.fixture(loop_scope="session")
async def look(kept: Looker, watch: watching.Watch) -> AsyncIterator[Looker]:
    """A page that tests share and that knows our scripts already: for those that only look, and change nothing."""
    async with contextlib.AsyncExitStack() as stack:

        async def look_as(login: houses.Login | None) -> async_api.Page:
            page = await kept(login)
            await page.set_viewport_size({"width": 1280, "height": 860})
            await page.emulate_media(color_scheme="light")
            watch.over(page.context)
            stack.callback(watch.leave, page.context)
            # The next test finds an empty page, on which nothing happens any more.
            stack.push_async_callback(page.goto, "about:blank")
            return page

        yield look_as


@pytest_asyncio.fixture(loop_scope="session")
async def visitor(open_page: Opener) -> async_api.Page:
    """A page of somebody who has not logged in."""
    return await open_page()


@pytest_asyncio.fixture(loop_scope="session")
async def page(look: Looker, house: houses.House) -> async_api.Page:
    """A page of the demo account's owner, logged in; tests share it, and only look."""
    return await look(house.login)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def newcomer(house: houses.House) -> houses.Login:
    """The owner of an account that has done nothing yet; tests only look at it."""
    _, login = await house.new_account("New", domain=False)
    return login
