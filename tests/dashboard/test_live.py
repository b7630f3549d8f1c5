"""`/live` over real sockets: when a stream speaks, when it ends, and what it costs others."""

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass

import httpx
import pytest
import pytest_asyncio

from postroad import config, context
from postroad.dashboard.framework import cookies, live
from postroad.dashboard.framework import site as sites
from postroad.model.bounces import disposition
from postroad.network.http import http_server
from postroad.roles import composition
from postroad.services import usage_limits
from postroad.services.accounts import statistics
from postroad.services.people import sessions
from tests import accepted_mail
from tests.contexts import Clock
from tests.dashboard.browser_client import Browser, Served, Switch
from tests.services import claimed_mail

# A bound for machines that are busy; everything here takes a moment.
TIMEOUT = 300


@dataclass(frozen=True, slots=True)
class Stream:
    """A stream that a browser has open."""

    response: httpx.Response
    lines: AsyncIterator[str]

    async def next(self) -> str:
        """The next line that says something; comments and blanks do not. Empty at the end."""
        async with asyncio.timeout(TIMEOUT):
            async for line in self.lines:
                if line and not line.startswith(":"):
                    return line
        return ""

    async def comment(self) -> None:
        """Wait until the stream has looked once more and found nothing."""
        async with asyncio.timeout(TIMEOUT):
            async for line in self.lines:
                if line.startswith(":"):
                    return
                assert not line, line
        pytest.fail("the stream has ended")


@pytest_asyncio.fixture
async def listener(served: Served, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[http_server.HttpListener]:
    """The dashboard, listening; its streams look often."""
    monkeypatch.setattr(live, "POLL_SECONDS", 0.02)
    monkeypatch.setattr(sites, "MAX_FINGERPRINT_SECONDS", 0.02)
    listening = http_server.HttpListener(served, refuse=served.refuse, sweep_seconds=0.02)
    await listening.start("127.0.0.1", 0)
    yield listening
    await listening.stop(grace_seconds=TIMEOUT)


@contextlib.asynccontextmanager
async def visiting(listener: http_server.HttpListener, session: sessions.Session) -> AsyncIterator[httpx.AsyncClient]:
    host, port = listener.address
    headers = {"Cookie": f"{cookies.SESSION}={session.token}"}
    async with httpx.AsyncClient(base_url=f"http://{host}:{port}", headers=headers, timeout=TIMEOUT) as client:
        yield client


@contextlib.asynccontextmanager
async def streaming(listener: http_server.HttpListener, browser: Browser) -> AsyncIterator[Stream]:
    """The stream of a page that has just been opened."""
    assert browser.session is not None
    async with visiting(listener, browser.session) as client:
        since = fingerprint_of(await client.get("/"))
        async with client.stream("GET", "/live", params={"since": since}) as response:
            assert response.status_code == 200
            yield Stream(response, response.aiter_lines())


def fingerprint_of(page: httpx.Response) -> str:
    """What the page says that it shows."""
    (fingerprint,) = re.findall(r'<body [^>]*data-fingerprint="(\w+)"', page.text)
    return str(fingerprint)


async def is_free(ctx: context.Context) -> None:
    """Wait until no stream holds a place."""
    async with asyncio.timeout(TIMEOUT):
        while ctx.work_in_progress:
            await asyncio.sleep(0.01)


async def test_a_stream_begins_at_once_and_says_what_it_is(
    listener: http_server.HttpListener, browser: Browser
) -> None:
    async with streaming(listener, browser) as stream:
        assert stream.response.headers["content-type"] == "text/event-stream"
        assert stream.response.headers["cache-control"] == "no-store"
        await stream.comment()


async def test_a_page_that_is_out_of_date_hears_so_at_once(
    ctx: context.Context, listener: http_server.HttpListener, browser: Browser
) -> None:
    await accepted_mail.allow_sending(ctx, browser.account_id)
    assert browser.session is not None
    async with visiting(listener, browser.session) as client:
        before = fingerprint_of(await client.get("/messages"))
        await accepted_mail.accept(ctx, browser.account_id)
        for query in ({"since": before}, {}):
            async with client.stream("GET", "/live", params=query) as response:
                stream = Stream(response, response.aiter_lines())
                assert await stream.next() == "event: changed"
                assert await stream.next() == "data:"
                await stream.comment()


async def test_it_says_when_mail_was_accepted_and_when_a_result_came(
    ctx: context.Context, listener: http_server.HttpListener, browser: Browser
) -> None:
    await accepted_mail.allow_sending(ctx, browser.account_id)
    async with streaming(listener, browser) as stream:
        await stream.comment()
        await accepted_mail.accept(ctx, browser.account_id)
        assert await stream.next() == "event: changed"
        assert await stream.next() == "data:"
        (claimed,) = await claimed_mail.claim_all(ctx, claimed_mail.WORKER)
        await ctx.outcome_commits.submit([claimed_mail.outcome(ctx, claimed, disposition.Verdict.DELIVERED)])
        assert await stream.next() == "event: changed"


async def test_it_hears_of_what_another_process_has_done(
    ctx: context.Context,
    settings: config.Settings,
    clock: Clock,
    listener: http_server.HttpListener,
    browser: Browser,
) -> None:
    await accepted_mail.allow_sending(ctx, browser.account_id)
    async with composition.open_context(settings, clock=clock) as other, streaming(listener, browser) as stream:
        await stream.comment()
        await accepted_mail.accept(other, browser.account_id)
        assert await stream.next() == "event: changed"


async def test_it_says_nothing_of_other_accounts(
    ctx: context.Context, listener: http_server.HttpListener, browser: Browser, stranger: Browser
) -> None:
    await accepted_mail.allow_sending(ctx, stranger.account_id)
    async with streaming(listener, browser) as mine, streaming(listener, stranger) as theirs:
        await accepted_mail.accept(ctx, stranger.account_id)
        assert await theirs.next() == "event: changed"
        await mine.comment()
        await mine.comment()


async def test_it_ends_with_the_session(
    ctx: context.Context, listener: http_server.HttpListener, browser: Browser
) -> None:
    assert browser.user is not None
    async with streaming(listener, browser) as stream:
        await stream.comment()
        await browser.post("/logout")
        assert await stream.next() == ""
    await is_free(ctx)
    assert browser.session is not None
    async with visiting(listener, browser.session) as client:
        assert (await client.get("/live")).status_code == 401


async def test_it_ends_when_the_service_stops_and_does_not_hold_that_up(
    ctx: context.Context, listener: http_server.HttpListener, browser: Browser, switch: Switch
) -> None:
    async with streaming(listener, browser) as stream:
        switch.stopping = True
        stopping = asyncio.create_task(listener.stop(grace_seconds=TIMEOUT))
        assert await stream.next() == ""
        async with asyncio.timeout(TIMEOUT / 2):
            await stopping
    assert not ctx.work_in_progress


async def test_it_ends_after_its_time(
    ctx: context.Context, listener: http_server.HttpListener, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "STREAM_SECONDS", 0.1)
    async with streaming(listener, browser) as stream:
        assert await stream.next() == ""
    assert not ctx.work_in_progress


async def test_a_browser_that_goes_leaves_its_place_to_others(
    ctx: context.Context, listener: http_server.HttpListener, browser: Browser
) -> None:
    async with streaming(listener, browser):
        assert ctx.work_in_progress
    await is_free(ctx)


async def test_one_too_many_is_refused_until_another_has_ended(
    ctx: context.Context,
    listener: http_server.HttpListener,
    browser: Browser,
    reader: Browser,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        live, "STREAMS", usage_limits.WorkLimit("live updates", per_account=1, per_process=10, retry_seconds=10)
    )
    assert reader.session is not None
    async with streaming(listener, browser), visiting(listener, reader.session) as client:
        refused = await client.get("/live")
        assert refused.status_code == 429
        assert refused.headers["retry-after"] == "10"
        assert "at most 1 at once" in refused.json()["error"]
    await is_free(ctx)
    async with streaming(listener, reader) as stream:
        await stream.comment()


async def test_streams_of_an_account_share_a_look(ctx: context.Context, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = 0

    async def pulse(_ctx: context.Context, _account_id: str) -> bytes:
        nonlocal looks
        looks += 1
        return bytes([looks])

    monkeypatch.setattr(statistics, "change_fingerprint", pulse)
    monkeypatch.setattr(sites, "MAX_FINGERPRINT_SECONDS", TIMEOUT)
    monkeypatch.setattr(sites, "MAX_ACCOUNTS", 2)
    pulses = sites.FingerprintCache()
    assert [await pulses.of(ctx, "a"), await pulses.of(ctx, "a"), await pulses.of(ctx, "b")] == ["01", "01", "02"]
    # One account more than are cached: all are dropped, and read again.
    assert [await pulses.of(ctx, "c"), await pulses.of(ctx, "c"), await pulses.of(ctx, "a")] == ["03", "03", "04"]


async def test_a_page_that_brings_itself_up_to_date_takes_no_notice_from_the_next_one(
    ctx: context.Context, browser: Browser
) -> None:
    await accepted_mail.allow_sending(ctx, browser.account_id)
    sent = await browser.post("/welcome/test", {"to": "ada@example.net", "sender": f"hello@{accepted_mail.DOMAIN}"})
    assert sent.status_code == 303
    refreshed = await browser.client.get("/", headers={"X-Refreshed": "page"})
    assert "Test sent to" not in refreshed.text
    assert "Test sent to" in (await browser.get("/welcome")).text
    assert "Test sent to" not in (await browser.get("/welcome")).text
