"""Hostile mail in the preview, in a real browser: nothing runs, nobody is dialled, and no frame leaves its place (I1).

All inputs are shown on one page, each in a frame of its own, and each frame is clicked. The last frame holds a link of
ours that works: when its request has come, everything that was asked for before has been sent. It shows as well that
sandbox and policy alone let a link lead the frame away.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

import pytest
import pytest_asyncio
from playwright import async_api

from postroad.services.messages import previews
from tests.browser import chromium, skip_report
from tests.security import hostile_html

pytestmark = pytest.mark.asyncio(loop_scope="module")

LOOPBACK = "127.0.0.1"
# For a machine that does much else; a test that waits this long has failed.
TIMEOUT_SECONDS = 600
STYLE = "<!doctype html><style>iframe{width:90px;height:60px;border:0}</style>"
MIDDLES = (
    "() => [...document.querySelectorAll('iframe')].map(f => f.getBoundingClientRect()).map(r => [r.x+45, r.y+30])"
)
CONTROL = f"<a href=/control {hostile_html.OVER_ALL}>x</a>"
Headers = tuple[tuple[str, str], ...]
REWRITTEN = hostile_html.BY_ITSELF | hostile_html.BY_CLICK
ALL = REWRITTEN | hostile_html.BY_STYLE


@dataclass(slots=True)
class Site:
    """A server of a few answers that knows who dialled, and for what."""

    answers: dict[str, tuple[Headers, bytes]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    dialled: int = 0
    port: int = 0
    news: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def address(self) -> str:
        return f"http://{LOOPBACK}:{self.port}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.dialled += 1
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            path = (await reader.readuntil(b"\r\n\r\n")).split(b" ")[1].decode()
            self.asked.append(path)
            self.news.set()
            headers, body = self.answers.get(path, ((), b""))
            fields = [*headers, ("Content-Length", str(len(body))), ("Connection", "close")]
            lines = "".join(f"{name}: {value}\r\n" for name, value in fields)
            writer.write(f"HTTP/1.1 200 OK\r\n{lines}\r\n".encode() + body)
            await writer.drain()
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()

    async def until_asked(self, *paths: str) -> None:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            while not set(paths) <= set(self.asked):
                self.news.clear()
                await self.news.wait()


@contextlib.asynccontextmanager
async def serving() -> AsyncIterator[Site]:
    site = Site()
    server = await asyncio.start_server(site.serve, LOOPBACK, 0)
    site.port = server.sockets[0].getsockname()[1]
    async with server:
        yield site


@dataclass(slots=True)
class Stage:
    """A page that shows messages, somebody else's server, and what is seen of both."""

    page: async_api.Page
    own: Site
    outside: Site
    said: list[str]

    def aimed(self, html: str, number: int) -> str:
        """The input with an address outside that tells which input it was."""
        host = f"{LOOPBACK}:{self.outside.port}/{number}"
        return html.replace("OUTHOST", host).replace("OUT", f"http://{host}")

    async def show(self, documents: Sequence[bytes], *, headers: Headers, sandbox: str) -> None:
        kind = ("Content-Type", previews.DOCUMENT_TYPE)
        frames = [f'<iframe {sandbox} src="/frame/{number}"></iframe>' for number in range(len(documents))]
        self.own.answers["/"] = (kind,), (STYLE + "".join(frames)).encode()
        for number, body in enumerate(documents):
            self.own.answers[f"/frame/{number}"] = (kind, *headers), body
        await self.page.goto(self.own.address, wait_until="load")

    async def click_everywhere(self) -> None:
        for x, y in await self.page.evaluate(MIDDLES):
            await self.page.mouse.click(x, y)

    def places(self) -> list[str]:
        """Where the frames are, but for steps within a document."""
        return [frame.url.partition("#")[0].removeprefix(self.own.address) for frame in self.page.frames]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[async_api.Browser]:
    program = chromium.find()
    if program is None:
        skip_report.skip("previews in a browser", because="no Chromium was found", remedy=chromium.REMEDY)
    async with chromium.running(program) as running:
        yield running


@pytest_asyncio.fixture(loop_scope="module")
async def stage(browser: async_api.Browser) -> AsyncIterator[Stage]:
    async with serving() as own, serving() as outside:
        context = await browser.new_context(viewport={"width": 1200, "height": 900})
        try:
            said: list[str] = []
            context.on("console", lambda message: said.append(message.text))
            page = await context.new_page()
            page.set_default_timeout(TIMEOUT_SECONDS * 1000)
            yield Stage(page, own, outside, said)
        finally:
            await context.close()


def document(html: str) -> bytes:
    raw = b"Content-Type: text/html; charset=utf-8\r\n\r\n" + html.encode()
    return previews.html_document(previews.of_bytes(raw))


@pytest.mark.parametrize(
    "inputs, headers, sandbox",
    [
        (ALL, previews.DOCUMENT_HEADERS, "sandbox"),
        (ALL, previews.DOCUMENT_HEADERS, ""),
        (REWRITTEN, (), ""),
    ],
    ids=["as in the dashboard", "with the policy alone", "with nothing but rewriting"],
)
async def test_hostile_html_does_nothing(stage: Stage, inputs: dict[str, str], headers: Headers, sandbox: str) -> None:
    hostile = [document(stage.aimed(html, number)) for number, html in enumerate(inputs.values())]
    await stage.show([*hostile, CONTROL.encode()], headers=headers, sandbox=sandbox)
    await stage.click_everywhere()
    await stage.own.until_asked("/control")
    assert [list(inputs)[int(path.strip("/").partition("#")[0])] for path in stage.outside.asked] == []
    assert stage.outside.dialled == 0
    assert "RAN" not in stage.said
    assert len(stage.page.context.pages) == 1
    assert stage.places()[:-1] == ["/", *(f"/frame/{number}" for number in range(len(hostile)))]


async def test_the_stage_sees_what_happens_without_any_guard(stage: Stage) -> None:
    """Else the test above would see nothing because there is nothing to see."""
    names = ["script", "image with a handler", "image", "preload", "refresh", "frame with an address", "link"]
    names += hostile_html.BY_STYLE.keys() - {"svg paint"}  # of which this browser takes nothing from elsewhere
    raw = [stage.aimed(ALL[name], number).encode() for number, name in enumerate(names)]
    await stage.show(raw, headers=(), sandbox="")
    await stage.click_everywhere()
    await stage.outside.until_asked(*(f"/{number}" for number in range(2, len(names))))
    assert stage.said.count("RAN") == 2
