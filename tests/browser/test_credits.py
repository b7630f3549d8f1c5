"""Credits in a browser: a line for each day, which opens to its entries."""

import re

from playwright import async_api

from tests.browser import axe, dev_service
from tests.browser.conftest import Opener


async def test_a_day_of_the_ledger_opens_to_its_entries(open_page: Opener, dev: dev_service.DevService) -> None:
    _, login = await dev.new_account()
    page = await open_page(login)
    await page.goto("/credits")
    days = page.get_by_role("region", name="Ledger")
    await async_api.expect(days.get_by_role("row")).to_have_count(2)
    await async_api.expect(days).to_contain_text("+1,000")
    await axe.check(page)
    await days.get_by_role("link").click()
    await async_api.expect(page.get_by_role("heading", level=1)).to_have_text(re.compile(r"Credits on \d{4}-\d\d-\d\d"))
    await async_api.expect(page.get_by_role("region", name="Ledger")).to_contain_text("Credits added for tests")
    await axe.check(page)
    await page.get_by_role("main").get_by_role("link", name="Credits").click()
    await async_api.expect(days).to_be_visible()
