"""The dashboard in a browser with each role: what a role cannot use is not there."""

import pytest
from playwright import async_api

from postroad.model.people import callers
from tests.browser import axe, dev_service, pages
from tests.browser.conftest import Opener
from tests.reliability import profile

expect = async_api.expect
Role = callers.Role
PATHS = {page.name: page for page in pages.PAGES}
# Roles that users manage, and in the select of the invitation.
GIVEN = {
    Role.OWNER: ["Owner", "Admin", "Developer", "Analyst", "Read only"],
    Role.ADMIN: ["Admin", "Developer", "Analyst", "Read only"],
}


async def check(page: async_api.Page, role: callers.Role) -> None:
    """Run axe for the read-only role, whose pages leave out most; test_every_page.py covers the owner's."""
    if profile.IS_LONG or role is Role.READ_ONLY:
        await axe.check(page)


@pytest.mark.parametrize("role", Role)
async def test_pages_show_what_the_role_permits(
    open_page: Opener, dev: dev_service.DevService, role: callers.Role
) -> None:
    granted = callers.ROLE_PERMISSIONS[role]
    page = await open_page(await dev.new_person(dev.account.id, role=role))
    main = page.locator("main")

    await page.goto("/team")
    owners = main.locator(".people li", has=page.locator(".role", has_text="Owner"))
    developers = main.locator(".people li", has=page.locator(".role", has_text="Developer"))
    await expect(owners.first.locator("details.manage")).to_have_count(int(role is Role.OWNER))
    await expect(developers.first.locator("details.manage")).to_have_count(int(role in GIVEN))
    if role in GIVEN:
        await expect(main.locator("#field-role option")).to_have_text(GIVEN[role])
    else:
        await expect(main.get_by_role("heading", name="Invite a team member")).to_have_count(0)
    await check(page, role)

    await main.get_by_role("link", name="What each role permits").first.click()
    await page.wait_for_url("**/team/roles")
    await expect(main.get_by_role("cell", name="yes", exact=True)).to_have_count(
        sum(map(len, callers.ROLE_PERMISSIONS.values())) + 1
    )
    await check(page, role)

    sees = callers.Permission.CONTENT in granted
    await page.goto(pages.path_of(PATHS["message"], dev))
    await expect(main.locator("h1")).to_have_text("Subject hidden") if not sees else None
    await expect(main.get_by_text("Your role cannot see the subject")).to_have_count(int(not sees))
    await expect(main.get_by_role("link", name="Copy as code")).to_have_count(int(sees))
    await check(page, role)

    if callers.Permission.CHANGE not in granted:
        for name, link in (("templates", "New template"), ("keys", "Create API key"), ("domains", "Add a domain")):
            await page.goto(pages.path_of(PATHS[name], dev))
            await expect(main.get_by_role("button", name=link)).to_have_count(0)
            await expect(main.get_by_role("link", name=link)).to_have_count(0)
            await expect(main.locator("form[method=post]:not([data-zone-offer])")).to_have_count(0)
    await page.goto("/templates")
    await expect(main.locator("td.alias a").first).to_have_count(1) if sees else None
    await expect(main.get_by_text("Subject hidden").first).to_have_count(int(not sees))
