"""The page of a message in a real browser: trying now, views that change in place, widths, and results that come in."""

from playwright import async_api

from postroad.model import send_request
from tests.browser import dev_service, sent_messages
from tests.browser.conftest import Opener

expect = async_api.expect


async def test_what_waits_is_tried_now_and_its_result_comes_in(open_page: Opener, dev: dev_service.DevService) -> None:
    page = await open_page(dev.deferred_login)
    await page.goto(f"/messages/{dev.deferred_message}")
    attempts = page.locator("table.attempts tbody tr")
    await expect(attempts).to_have_count(1)
    await page.get_by_role("button", name="Retry now: late@example.net").click()
    await expect(page.locator("#notices")).to_contain_text("Retrying 1 recipient now.")
    await expect(attempts).to_have_count(2)
    await expect(page.locator("#head .status-delivered")).to_be_visible()


async def test_views_change_in_place(open_page: Opener, dev: dev_service.DevService) -> None:
    message_id, login = await sent_messages.send_from_new_account(dev, text="Plain words", html="<h1>Large words</h1>")
    page = await open_page(login)
    await page.goto(f"/messages/{message_id}")
    frame = page.frame_locator("#preview iframe")
    await expect(frame.get_by_role("heading", name="Large words")).to_be_visible()
    await page.evaluate("window.still = true")
    await page.get_by_role("link", name="Text", exact=True).click()
    await expect(page.locator("pre.content")).to_have_text("Plain words")
    await expect(page.get_by_role("link", name="Text", exact=True)).to_be_focused()
    await page.get_by_role("link", name="Headers", exact=True).click()
    await expect(page.locator("table.headers")).to_contain_text("Message-ID")
    await page.get_by_role("link", name="Source", exact=True).click()
    await expect(page.locator("pre.content")).to_contain_text("MIME-Version")
    assert await page.evaluate("window.still") is True
    assert page.url.endswith("?view=source#preview")


async def test_the_frame_becomes_as_narrow_as_a_phone(open_page: Opener, dev: dev_service.DevService) -> None:
    message_id, login = await sent_messages.send_from_new_account(dev, html="<p>Hello")
    page = await open_page(login)
    await page.goto(f"/messages/{message_id}")
    frame = page.locator("#preview iframe")
    wide = await frame.evaluate("frame => frame.clientWidth")
    await page.get_by_label("Phone").check()
    narrow = await frame.evaluate("frame => frame.clientWidth")
    assert wide > 500 > narrow > 300
    await page.get_by_label("Desktop").check()
    assert await frame.evaluate("frame => frame.clientWidth") == wide


async def test_a_file_is_saved_and_the_page_stays(open_page: Opener, dev: dev_service.DevService) -> None:
    attachment = send_request.Attachment("x.html", "PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==", "text/html")
    message_id, login = await sent_messages.send_from_new_account(dev, attachments=(attachment,))
    page = await open_page(login)
    await page.goto(f"/messages/{message_id}?view=files")
    async with page.expect_download() as started:
        await page.get_by_role("link", name="Download x.html").click()
    assert (await started.value).suggested_filename == "x.html"
    assert f"/messages/{message_id}" in page.url
    assert len(page.context.pages) == 1
