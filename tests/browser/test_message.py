"""The page of a message in a real browser: trying now, views that change in place, widths, and results that come in."""

import base64
import re

from playwright import async_api

from tests import webhook_server
from tests.browser import axe, dev_service, sent_messages
from tests.browser.conftest import Opener

expect = async_api.expect


async def test_what_waits_is_tried_now_and_its_result_comes_in(open_page: Opener, dev: dev_service.DevService) -> None:
    page = await open_page(dev.deferred_login)
    await page.goto(f"/messages/{dev.deferred_message}")
    attempts = page.locator("table.attempts tbody tr")
    await expect(attempts).to_have_count(1)
    await page.get_by_role("button", name="Retry now: late@example.net").click()
    await expect(page.locator(".toast")).to_have_text("Retrying 1 recipient now.")
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


PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
IN_THE_DARK = "<style>@media (prefers-color-scheme: dark) { p { color: rgb(1, 2, 3) } }</style>"


async def test_the_html_is_shown_on_a_phone_in_the_dark_and_with_its_images(
    open_page: Opener, dev: dev_service.DevService
) -> None:
    async with webhook_server.running(tls=False, answer=webhook_server.ok(200, PNG)) as images:
        html = f"{IN_THE_DARK}<p>Hello</p><img src='{images.at(images.host)}' alt='' width='50'>"
        message_id, login = await sent_messages.send_from_new_account(dev, html=html)
        page = await open_page(login)
        await page.goto(f"/messages/{message_id}")
        frame = page.locator("#preview iframe")
        inside = page.frame_locator("#preview iframe")
        assert await frame.evaluate("frame => frame.clientWidth") == 616
        await page.evaluate("window.still = true")
        await page.get_by_role("link", name="Phone").click()
        await expect(page.locator(".preview-frame.phone")).to_be_visible()
        assert await frame.evaluate("frame => frame.clientWidth") == 375
        await expect(inside.get_by_text("Hello")).to_have_css("color", "rgb(0, 0, 0)")
        await page.get_by_role("link", name="Dark").click()
        await expect(inside.get_by_text("Hello")).to_have_css("color", "rgb(1, 2, 3)")
        await expect(page.get_by_role("link", name="Dark")).to_be_focused()
        assert images.requests == []
        await page.get_by_role("link", name="Show remote images").click()
        await expect(page.get_by_role("link", name="Hide remote images")).to_be_focused()
        await expect(inside.locator("img")).to_have_attribute("src", re.compile("^data:image/png;base64,iVBOR"))
        assert await inside.locator("img").evaluate("image => image.decode().then(() => image.naturalWidth)") == 1
        await page.get_by_role("link", name="Checks").click()
        await expect(page.get_by_role("region", name="HTML support")).to_contain_text("@media (prefers-color-scheme)")
        await page.get_by_text("Not supported: ").first.click()
        await expect(page.get_by_text("Gmail, Android").first).to_be_visible()
        await axe.check(page)
        await page.emulate_media(color_scheme="dark")
        await page.set_viewport_size({"width": 390, "height": 844})
        assert await page.evaluate("document.documentElement.scrollWidth") <= 390
        await axe.check(page)
        assert await page.evaluate("window.still")
