"""What browser tests share: one Chromium and one service a worker, and new browser contexts for every test.

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


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def sessions(browser: async_api.Browser, house: houses.House) -> entering.Sessions:
    """Who has logged in to the service of this worker."""
    return entering.Sessions(browser, house.base_url)


@pytest.fixture
def watch(house: houses.House) -> watching.Watch:
    """What this test's pages do wrong; a test that provokes something says `watch.expect(...)` first."""
    return watching.Watch(house.base_url)


@pytest_asyncio.fixture(loop_scope="session")
async def open_page(
    browser: async_api.Browser, house: houses.House, sessions: entering.Sessions, watch: watching.Watch
) -> AsyncIterator[Opener]:
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
                storage_state=await sessions.of(login) if login else None,
            )
            stack.push_async_callback(context.close)
            context.set_default_timeout(PATIENCE_MILLISECONDS)
            watch.over(context)
            return await context.new_page()

        yield open_one
    complaints = watch.complaints()
    assert not complaints, "\n".join(["the browser complains:", *complaints])


@pytest_asyncio.fixture(loop_scope="session")
async def visitor(open_page: Opener) -> async_api.Page:
    """A page of somebody who has not logged in."""
    return await open_page()


@pytest_asyncio.fixture(loop_scope="session")
async def page(open_page: Opener, house: houses.House) -> async_api.Page:
    """A page of the demo account's owner, logged in."""
    return await open_page(house.login)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def newcomer(house: houses.House) -> houses.Login:
    """The owner of an account that has done nothing yet; tests only look at it."""
    _, login = await house.new_account("New", domain=False)
    return login
