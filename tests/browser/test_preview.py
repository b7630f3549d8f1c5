"""Hostile mail on the page of its message, in a real browser: nothing runs, nobody is asked, nothing leaves (I1, I4).

Every input is looked at as people do: the page is opened and the frame is clicked. `tests/security/test_previews.py`
shows that the same inputs do harm without the guards.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest
from playwright import async_api

from tests.browser import dev_service, page_monitor, sent_messages
from tests.browser.conftest import Opener
from tests.security import hostile_html

INPUTS = hostile_html.BY_ITSELF | hostile_html.BY_CLICK | hostile_html.BY_STYLE
# The inputs of I1: those that happen by themselves in one message, a message for each that waits for a click, and one
# with all there are.
BY_POLICY = "background in a sheet"
BY_ITSELF = (
    "script",
    "image with a handler",
    "svg with a handler",
    "frame with a document",
    "refresh",
    "base",
    BY_POLICY,
)
MAIL = {
    "by itself": "\n".join(INPUTS[name] for name in BY_ITSELF),
    "form": INPUTS["form"],
    "link that runs": INPUTS["link that runs"],
    "link to the top": INPUTS["link to the top"],
    "everything": "\n".join(INPUTS.values()),
}
MARK = "<p>Shown to the end</p>"


@contextlib.asynccontextmanager
async def listening() -> AsyncIterator[tuple[str, list[str]]]:
    """Somebody else's server, which notes who dials."""
    dialled: list[str] = []

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        dialled.append((await reader.read(1000)).decode("latin-1"))
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()

    async with await asyncio.start_server(take, "127.0.0.1", 0) as server:
        host, port = server.sockets[0].getsockname()
        yield f"{host}:{port}", dialled


async def shown(page: async_api.Page, path: str) -> None:
    """Open the page, wait for its frame, and click into it."""
    await page.goto(path)
    frame = page.locator("#preview iframe")
    await frame.scroll_into_view_if_needed()
    await async_api.expect(page.frame_locator("#preview iframe").locator("body")).to_be_attached()
    await frame.click()


# The inbox shows mail by the same parts, so two inputs tell whether its guards are there.
@pytest.mark.parametrize(
    "place, names", [("message", tuple(MAIL)), ("inbox", ("by itself", "everything"))], ids=["message", "inbox"]
)
async def test_hostile_mail_runs_nothing_asks_nobody_and_leads_nowhere(
    open_page: Opener,
    dev: dev_service.DevService,
    monitor: page_monitor.PageMonitor,
    place: str,
    names: tuple[str, ...],
) -> None:
    account, login = await dev.new_account()
    page = await open_page(login)
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("dialog", lambda dialog: said.append(f"dialog: {dialog.message}"))
    async with listening() as (host, dialled):
        # Style sheets are left to the policy: the browser says what it would have loaded, and does not dial.
        monitor.expect("Content Security Policy")
        monitor.expect(rf"^foreign request: GET http://{host}/{list(MAIL).index('by itself')}$")
        for name in names:
            number = list(MAIL).index(name)
            aimed = MAIL[name].replace("OUTHOST", host).replace("OUT", f"http://{host}/{number}")
            to = f"hostile-{place}-{number}@example.net"
            message_id = await sent_messages.send(dev, account.id, to=(to,), subject=name, html=MARK + aimed)
            path = f"/messages/{message_id}"
            if place == "inbox":
                await page.goto(path)
                await async_api.expect(page.locator("#head .status-delivered")).to_be_visible()
                await page.goto(f"/inbox?search={to}")
                path = await page.locator("td.subject a").get_attribute("href") or ""
            await shown(page, path)
            await async_api.expect(
                page.frame_locator("#preview iframe").get_by_text("Shown to the end")
            ).to_be_visible()
            assert page.url == f"{dev.base_url}{path}", name
            frames = [frame.url.partition("#")[0] for frame in page.frames]
            assert frames == [page.url, f"{page.url}/preview/html"], name
            assert len(page.context.pages) == 1, name
            # Alone, without the frame around it, it is as harmless.
            await page.goto(f"{path}/preview/html")
            await async_api.expect(page.get_by_text("Shown to the end")).to_be_visible()
            await page.mouse.click(200, 200)
            assert page.url.partition("#")[0] == f"{dev.base_url}{path}/preview/html", name
        # A request that was made before this one would have come before it.
        await page.goto("/messages")
    assert dialled == []
    assert not [text for text in said if "RAN" in text or text.startswith("dialog")]
