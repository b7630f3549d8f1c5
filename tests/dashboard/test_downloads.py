"""Large downloads over real sockets: they come whole and in order, and who does not read holds little and not long."""

import asyncio
import base64
import contextlib
from collections.abc import AsyncIterator, Callable

import pytest

from postroad import context
from postroad.dashboard.framework import cookies
from postroad.model.delivery import fair_shares
from postroad.model.mail import send_request
from postroad.network.http import http_messages, http_server
from postroad.protocol.smtp import values as smtp
from postroad.services.messages import dev_inbox, previews
from tests import accepted_mail, passing_time, raw_http
from tests.dashboard.browser_client import Browser, Served

# More than the buffers of two sockets hold, which the system may let grow to some MiB each.
HUGE = b"Subject: x\r\n\r\n" + b"0123456789abcde\n" * (2 * 1024 * 1024)
FILE = bytes(range(256)) * 4096


def held(ctx: context.Context, account_id: str) -> int:
    usage = ctx.work_in_progress.get(previews.DOWNLOADS.name)
    return 0 if usage is None else usage.held(fair_shares.Party(account_id))


@contextlib.asynccontextmanager
async def listening(served: Served) -> AsyncIterator[http_server.HttpListener]:
    limits = http_messages.Limits(write_seconds=60)
    listener = http_server.HttpListener(served, refuse=served.refuse, limits=limits, sweep_seconds=0.02)
    await listener.start("127.0.0.1", 0)
    try:
        yield listener
    finally:
        await listener.stop(grace_seconds=5)


def asking(browser: Browser, path: str, *, method: str = "GET") -> bytes:
    assert browser.session is not None
    return raw_http.get(path, f"Cookie: {cookies.SESSION}={browser.session.token}", method=method)


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(raw_http.TIMEOUT_SECONDS):
        while not is_so():
            await asyncio.sleep(0.01)


@pytest.fixture
def huge(mail: dev_inbox.Inbox) -> str:
    """Where a huge message is saved from."""
    return f"/inbox/{mail.add(smtp.MailTransaction('a@example.org', ('b@example.net',), (HUGE,))).id}/raw"


async def test_a_large_message_and_its_file_come_whole_and_say_how_long_they_are(
    ctx: context.Context, browser: Browser, served: Served
) -> None:
    await accepted_mail.allow_sending(ctx, browser.account_id)
    file = send_request.Attachment("x.bin", base64.b64encode(FILE).decode(), "application/octet-stream")
    path = f"/messages/{await accepted_mail.accept(ctx, browser.account_id, attachments=(file,))}"
    async with listening(served) as listener, raw_http.connect(listener.address) as connection:
        await connection.send(asking(browser, f"{path}/attachments/1"))
        response = await connection.response()
        assert (response.status, response.body == FILE) == (200, True)
        assert response.headers["content-length"] == str(len(FILE))
        await connection.send(asking(browser, f"{path}/raw", method="HEAD"))
        head = await connection.response(has_body=False)
        await connection.send(asking(browser, f"{path}/raw"))
        raw = await connection.response()
        assert (head.status, head.headers["content-length"]) == (200, str(len(raw.body)))
        assert raw.body.endswith(b"--\r\n")
        assert "transfer-encoding" not in raw.headers
        await until(lambda: not ctx.work_in_progress)


async def test_who_does_not_read_holds_a_place_until_they_hang_up(
    ctx: context.Context, browser: Browser, served: Served, huge: str
) -> None:
    async with listening(served) as listener:
        async with contextlib.AsyncExitStack() as stalled:
            for _ in range(8):
                connection = await stalled.enter_async_context(raw_http.connect(listener.address))
                await connection.send(asking(browser, huge))
            await until(lambda: held(ctx, browser.account_id) == 8)
            refused = await raw_http.exchange(listener.address, asking(browser, huge))
            assert (refused.status, refused.headers["retry-after"]) == (429, "5")
            # Whatever is no download is served as ever.
            assert (await raw_http.exchange(listener.address, asking(browser, "/inbox"))).status == 200
        await until(lambda: not ctx.work_in_progress)
        assert (await raw_http.exchange(listener.address, asking(browser, huge))).body == HUGE


async def test_who_never_reads_is_cut_off_and_the_place_is_free(
    ctx: context.Context, browser: Browser, served: Served, huge: str
) -> None:
    async with listening(served) as listener, raw_http.connect(listener.address) as connection:
        await connection.send(asking(browser, huge))
        await passing_time.until_one(listener, lambda reached: reached.unwritable is not None)
        assert ctx.work_in_progress
        for seconds in (0, 61):
            passing_time.pass_seconds(listener, seconds)
        await until(lambda: not ctx.work_in_progress)
        assert len(await connection.rest()) < len(HUGE)
