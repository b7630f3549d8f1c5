"""The time zone of the browser is offered once, and then all times are in it."""

from playwright import async_api

from tests.browser import dev_service, logins, sent_messages

expect = async_api.expect


async def test_the_zone_of_the_browser_is_offered_until_one_is_chosen(
    browser: async_api.Browser, dev: dev_service.DevService
) -> None:
    _, login = await sent_messages.send_from_new_account(dev, to=("ada@example.net",))
    session = await logins.session_of(dev, login)
    context = await browser.new_context(base_url=dev.base_url, timezone_id="Asia/Tokyo", storage_state=session)
    try:
        page = await context.new_page()
        await page.goto("/audit-log")
        utc = await page.locator("td time").last.inner_text()
        offer = page.locator("[data-zone-offer]")
        await expect(offer).to_be_hidden()
        await page.locator(".current-user > summary").click()
        await expect(page.locator(".user-menu")).to_contain_text("times in UTC")
        await offer.get_by_role("button", name="Use Asia/Tokyo").click()
        await expect(page.get_by_text("Times are shown in Asia/Tokyo.")).to_be_visible()
        await expect(offer).to_have_count(0)
        local = page.locator("td time").last
        await expect(local).not_to_have_text(utc)
        assert "Asia/Tokyo (UTC+09:00)" in (await local.get_attribute("title") or "")
        await page.locator(".current-user > summary").click()
        await expect(page.get_by_role("link", name="Asia/Tokyo", exact=True)).to_have_attribute(
            "href", "/profile#time-zone"
        )
    finally:
        await context.close()
