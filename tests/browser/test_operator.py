"""The operator console in a browser: a hold from the selection to its release, and a check that is watched."""

from playwright import async_api

from tests.browser import axe, dev_service
from tests.browser.conftest import Opener


async def test_mail_to_a_domain_is_held_and_released(open_page: Opener, dev: dev_service.DevService) -> None:
    page = await open_page(dev.login)
    await page.goto("/")
    await page.get_by_role("link", name="Operator console").click()
    await page.get_by_role("link", name="Queue", exact=True).click()
    await page.get_by_role("combobox", name="Recipient domain").fill("Quiet.example")
    await page.get_by_role("button", name="Continue").click()
    await async_api.expect(page.get_by_role("heading", name="Retry 0 recipients?")).to_be_visible()
    await page.get_by_role("navigation", name="Actions").get_by_role("link", name="Hold").click()
    await page.get_by_label("Reason").fill("<b>their</b> server is down")
    await axe.check(page)
    await page.get_by_role("button", name="Hold recipients").click()
    await async_api.expect(page.get_by_text("Held: mail to quiet.example.")).to_be_visible()
    holds = page.locator("#holds")
    await async_api.expect(holds).to_contain_text("<b>their</b> server is down.")
    other = await open_page(dev.login)
    await other.goto("/operator/queue")
    await other.get_by_role("button", name="Release mail to quiet.example").click()
    await async_api.expect(other.get_by_text("Released: mail to quiet.example.")).to_be_visible()
    # Without a reload.
    await async_api.expect(holds).not_to_contain_text("quiet.example")


async def test_a_consistency_check_shows_its_result_without_a_reload(
    open_page: Opener, dev: dev_service.DevService
) -> None:
    page = await open_page(dev.login)
    await page.goto("/operator/consistency")
    await page.get_by_role("button", name="Start a check").click()
    await async_api.expect(page.get_by_role("heading", name="Consistency check: the whole database")).to_be_visible()
    await async_api.expect(page.locator("#job")).to_contain_text("No violations.")
    await axe.check(page)
