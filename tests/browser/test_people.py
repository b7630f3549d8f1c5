"""People in a browser: one is invited who has a login already, switches between accounts, and ends a session."""

import re

from playwright import async_api

from postroad.model.people import callers
from postroad.services.people import users
from tests.browser import axe, dev_service, logins, page_monitor
from tests.browser.conftest import Opener
from tests.browser.test_domains_and_credentials import say_yes


async def test_somebody_with_a_login_is_invited_joins_with_it_and_switches(
    open_page: Opener, dev: dev_service.DevService, monitor: page_monitor.PageMonitor
) -> None:
    home, login = await dev.new_account("Bakery")
    other, owner = await dev.new_account("Brewery")
    inviting = await open_page(owner)
    await inviting.goto("/team")
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
    await page.get_by_label("Other account").select_option(label=home.name)
    await page.get_by_role("button", name="Switch account").click()
    await async_api.expect(page.get_by_text(f"You are now in the account {home.name}.")).to_be_visible()
    await async_api.expect(page.locator(".current-user")).to_contain_text(home.name)
    await axe.check(page)
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
    await async_api.expect(page.get_by_text("The session is ended.")).to_be_visible()
    await async_api.expect(listed.get_by_role("listitem")).to_have_count(1)
    # Its live updates may end first.
    monitor.expect(r"^console: Failed to load resource: .* 401 .*/live")
    await other.goto("/domains")
    await other.wait_for_url("**/login**")


async def test_a_token_with_a_name_is_made_and_revoked(
    open_page: Opener, dev: dev_service.DevService, monitor: page_monitor.PageMonitor
) -> None:
    _, login = await dev.new_account("Bakery")
    page = await open_page(login)
    await page.goto("/profile")
    await page.get_by_label("Name", exact=True).fill("nightly")
    await page.evaluate(
        "document.querySelector('[name=last_day]').value = new Date(Date.now() + 864e5).toISOString().slice(0, 10)"
    )
    await page.get_by_role("button", name="Create token").click()
    await async_api.expect(page.get_by_text("Copy it now: it is not shown again.")).to_be_visible()
    await page.get_by_role("button", name="Revoke: Token nightly").click()
    await async_api.expect(page.get_by_text("The token is revoked.")).to_be_visible()
    await async_api.expect(page.get_by_text("Token nightly")).to_have_count(0)


async def test_a_user_is_disabled_and_removed_after_what_they_made_was_shown(
    open_page: Opener, dev: dev_service.DevService, monitor: page_monitor.PageMonitor
) -> None:
    account, login = await dev.new_account("Bakery")
    colleague = await dev.new_person(account.id, role=callers.Role.OWNER)
    theirs = await open_page(colleague)
    await theirs.goto("/credentials")
    await theirs.get_by_label("Name").fill("Oven")
    await theirs.get_by_role("button", name="Create credential").click()
    await async_api.expect(theirs.locator("main")).to_contain_text("Oven")
    page = await open_page(login)
    asked = await say_yes(page)
    await page.goto("/team")
    await page.get_by_label(f"Manage {colleague.email}").click()
    await page.get_by_role("link", name=f"Manage access of {colleague.email}").click()
    await async_api.expect(page.get_by_text("Oven")).to_be_visible()
    await axe.check(page)
    await page.get_by_role("button", name=f"Disable {colleague.email}").click()
    await async_api.expect(page.get_by_text(f"{colleague.email} is disabled.")).to_be_visible()
    await page.goto("/credentials")
    await async_api.expect(page.get_by_text(f"because {colleague.email} is disabled")).to_be_visible()
    await axe.check(page)
    await page.goto("/team")
    await page.get_by_label(f"Manage {colleague.email}").click()
    await page.get_by_role("link", name=f"Manage access of {colleague.email}").click()
    await async_api.expect(page.get_by_label("Revoke: these stop working within a second")).to_be_checked()
    await axe.check(page)
    await page.get_by_role("button", name=f"Remove {colleague.email}").click()
    await async_api.expect(page.get_by_text(f"{colleague.email} is removed from the team.")).to_be_visible()
    assert asked[0].startswith(f"Disable {colleague.email}?")
    assert asked[1].startswith(f"Remove {colleague.email} from the team?")
    assert [one.email for one in await users.of_account(dev.ctx, account.id)] == [login.email]
