"""People in a browser: one is invited who has a login already, switches between accounts, and ends a session."""

import re

from playwright import async_api

from tests.browser import axe, dev_service, logins, page_monitor
from tests.browser.conftest import Opener


async def test_somebody_with_a_login_is_invited_joins_with_it_and_switches(
    open_page: Opener, dev: dev_service.DevService, monitor: page_monitor.PageMonitor
) -> None:
    home, login = await dev.new_account("Bakery")
    other, owner = await dev.new_account("Brewery")
    inviting = await open_page(owner)
    await inviting.goto("/team")
    await inviting.get_by_role("button", name="Invite a user").click()
    await axe.check(inviting)
    await inviting.get_by_label("Email").fill(login.email)
    await inviting.get_by_role("button", name="Create invitation").click()
    shown = inviting.get_by_role("group", name="Link", exact=True)
    await shown.wait_for()
    link = re.search(r"/password/\w{43}", await shown.inner_text())
    assert link is not None
    page = await open_page()
    await page.goto(link[0])
    await async_api.expect(page.get_by_text("If you already have a login with this address")).to_be_visible()
    await axe.check(page)
    await page.fill("input[name=password]", login.password)
    await page.get_by_role("button", name="Set password and log in").click()
    await page.wait_for_url(lambda url: "/password/" not in url)
    await async_api.expect(page.locator(".current-user")).to_contain_text(other.name)
    await logins.open_account_menu(page)
    await page.get_by_role("button", name=home.name).click()
    await async_api.expect(page.get_by_text(f"You are now in the account {home.name}.")).to_be_visible()
    await async_api.expect(page.locator(".current-user")).to_contain_text(home.name)
    await axe.check(page)
    # A page that is open in another tab does not show another account's rows below the name of this one.
    beside = await page.context.new_page()
    await beside.goto("/messages")
    await logins.open_account_menu(page)
    await page.get_by_role("button", name=other.name).click()
    await async_api.expect(page.locator(".current-user")).to_contain_text(other.name)
    await beside.get_by_label("Status", exact=True).select_option("bounced")
    await async_api.expect(beside.locator(".current-user")).to_contain_text(other.name)
    await beside.close()
    await logins.open_account_menu(page)
    await page.get_by_role("button", name=home.name).click()
    await async_api.expect(page.locator(".current-user")).to_contain_text(home.name)
    # The next login enters the account that was used last.
    again = await open_page()
    await logins.log_in(again, login)
    await async_api.expect(again.locator(".current-user")).to_contain_text(home.name)


async def test_a_session_is_ended_on_the_profile_and_its_browser_is_logged_out(
    open_page: Opener, dev: dev_service.DevService, monitor: page_monitor.PageMonitor
) -> None:
    _, login = await dev.new_account("Bakery")
    page, other = await open_page(), await open_page()
    for one in (page, other):
        await logins.log_in(one, login)
    await page.goto("/profile")
    listed = page.get_by_role("list", name="Sessions and tokens")
    await async_api.expect(listed.get_by_role("listitem")).to_have_count(2)
    await async_api.expect(listed.get_by_text("this session")).to_have_count(1)
    await async_api.expect(listed).to_contain_text("Chrome on Linux")
    await axe.check(page)
    theirs = listed.get_by_role("listitem").filter(has_not_text="this session")
    await theirs.get_by_role("button").click()
    await async_api.expect(page.get_by_text("Session ended.")).to_be_visible()
    await async_api.expect(listed.get_by_role("listitem")).to_have_count(1)
    # Its live updates may end first.
    monitor.expect(r"^console: Failed to load resource: .* 401 .*/live")
    await other.goto("/domains")
    await other.wait_for_url("**/login**")
