"""An operator in a browser: finds an account, looks at its pages and at the content of a message, and ends the look."""

from playwright import async_api

from postroad.services import audit_log
from postroad.services.people import users
from tests.browser import axe, dev_service, page_monitor, questions, sent_messages
from tests.browser.conftest import Opener


async def test_an_operator_looks_at_an_account_and_ends_it(
    open_page: Opener, dev: dev_service.DevService, monitor: page_monitor.PageMonitor
) -> None:
    account, _ = await dev.new_account("Viewed <b>")
    page = await open_page(dev.login)
    await page.goto("/operator/accounts")
    await page.get_by_role("searchbox", name="Search").fill(account.id)
    await page.locator("main").get_by_role("button", name="Search").click()
    await page.get_by_role("link", name=account.name).click()
    await page.get_by_role("button", name="View as this account").click()
    await questions.agree(page, f"View the pages of {account.name}?")
    banner = page.get_by_text(f"You are viewing the account {account.name}.")
    await async_api.expect(banner).to_be_visible()
    await axe.check(page)
    await page.goto("/domains")
    await async_api.expect(banner).to_be_visible()
    await async_api.expect(page.get_by_role("button", name="Add")).to_have_count(0)
    await page.get_by_role("button", name="Stop viewing").click()
    await async_api.expect(page.get_by_text("You stopped viewing the account.")).to_be_visible()
    await async_api.expect(page.get_by_role("heading", name=account.name)).to_be_visible()
    await page.goto("/domains")
    await async_api.expect(banner).to_have_count(0)
    written = await audit_log.page(dev.ctx, account.id, before=None, limit=9)
    assert [one.actor for one in written if one.action == "account.viewed"] == ["operator"]


async def test_a_page_that_was_open_before_the_look_is_reloaded_and_never_shows_both_accounts(
    open_page: Opener, dev: dev_service.DevService, monitor: page_monitor.PageMonitor
) -> None:
    looked_at, _ = await dev.new_account("Another")
    mine, login = await dev.new_account("Own")
    await users.add_operator(dev.ctx, login.email)
    page = await open_page(login)
    open_before = await page.context.new_page()
    await open_before.goto("/messages")
    await page.goto(f"/operator/accounts/{looked_at.id}")
    await page.get_by_role("button", name="View as this account").click()
    await questions.agree(page, f"View the pages of {looked_at.name}?")
    await page.wait_for_url("**/")
    banner = open_before.get_by_text(f"You are viewing the account {looked_at.name}.")
    # Its stream still tells of the operator's own account, unless it was opened again in the meantime.
    await sent_messages.send(dev, mine.id)
    await async_api.expect(banner).to_be_visible()
