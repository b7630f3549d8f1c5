"""Passkeys with the virtual authenticator of a real browser, and the confirmation before sensitive actions.

Passkeys need a host name, so these pages are opened at localhost.
"""

import contextlib
from collections.abc import AsyncIterator
from urllib import parse

import pytest
import pytest_asyncio
from playwright import async_api

from postroad.model.units import times
from postroad.services.people import users
from postroad.storage.people import credentials, sessions
from tests.browser import axe, dev_service, logins, page_monitor, questions
from tests.browser.conftest import TIMEOUT_MILLISECONDS

expect = async_api.expect
SECURITY = "/profile/security"


@pytest_asyncio.fixture(loop_scope="session")
async def local(browser: async_api.Browser, dev: dev_service.DevService) -> AsyncIterator[async_api.Page]:
    """A page at localhost."""
    origin = f"http://localhost:{parse.urlsplit(dev.base_url).port}"
    monitor = page_monitor.PageMonitor(origin)
    # A refused form, and the request that ends when a page is left.
    monitor.expect(r"^console: Failed to load resource: .* 40[03] ")
    context = await browser.new_context(base_url=origin)
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(context.close)
        context.set_default_timeout(TIMEOUT_MILLISECONDS)
        monitor.over(context)
        yield await context.new_page()
    assert not monitor.problems()


@pytest_asyncio.fixture(loop_scope="session")
async def authenticator(local: async_api.Page) -> "Authenticator":
    """The authenticator of this page."""
    return await add_authenticator(local)


class Authenticator:
    """The authenticator of a page: a finger is on it, unless a test takes it away. Another tab has none."""

    def __init__(self, devtools: async_api.CDPSession, authenticator_id: str) -> None:
        self._devtools = devtools
        self._id = authenticator_id

    async def touch(self, *, is_touched: bool) -> None:
        """Whether a person is present."""
        values = {"authenticatorId": self._id, "enabled": is_touched}
        await self._devtools.send("WebAuthn.setAutomaticPresenceSimulation", values)


async def add_authenticator(page: async_api.Page) -> Authenticator:
    """Plug one in that verifies its person."""
    devtools = await page.context.new_cdp_session(page)
    await devtools.send("WebAuthn.enable")
    options = {
        "protocol": "ctap2",
        "transport": "internal",
        "hasResidentKey": True,
        "hasUserVerification": True,
        "isUserVerified": True,
        "automaticPresenceSimulation": True,
    }
    added = await devtools.send("WebAuthn.addVirtualAuthenticator", {"options": options})
    return Authenticator(devtools, added["authenticatorId"])


async def forget_proofs(page: async_api.Page, dev: dev_service.DevService, login: dev_service.Login) -> None:
    """As if the person had logged in an hour ago; returns when the service knows it, a moment after it was written."""
    user = await users.by_email(dev.ctx, login.email)
    assert user is not None
    now = dev.ctx.clock()
    async with dev.ctx.store.transaction() as tx:
        for session in await sessions.of_user(tx, user.id, now=now):
            await sessions.confirm(tx, session.id, methods=session.methods, now=now - times.HOUR)
        await credentials.bump_access_version(tx)
    await page.goto("/confirm")
    while await page.get_by_role("status").get_by_text("Confirmed.").count():
        await page.reload()


async def add_passkey(page: async_api.Page, name: str) -> None:
    """The first one, which comes with recovery codes."""
    await page.goto(SECURITY)
    await page.get_by_label("Name", exact=True).fill(name)
    await page.get_by_role("button", name="Add passkey").click()
    await expect(page.get_by_role("heading", name="Your recovery codes")).to_be_visible()


async def test_a_passkey_is_added_logs_in_without_a_password_and_is_removed(
    local: async_api.Page, authenticator: Authenticator, dev: dev_service.DevService
) -> None:
    _, login = await dev.new_account()
    await logins.log_in(local, login)
    await add_passkey(local, "Laptop")
    await expect(local.get_by_role("list", name="Your passkeys")).to_contain_text("Not used yet")
    await axe.check(local, rules=axe.ALL_RULES)
    await authenticator.touch(is_touched=False)
    await logins.log_out(local)
    await axe.check(local)
    await authenticator.touch(is_touched=True)
    await local.get_by_role("button", name="Log in with a passkey").click()
    await local.wait_for_url(lambda url: "/login" not in url)
    await local.goto(SECURITY)
    await expect(local.get_by_role("list", name="Your passkeys")).to_contain_text("Last used")
    await local.get_by_role("button", name="Remove the passkey Laptop").click()
    await questions.agree(local, "Remove the passkey Laptop?")
    await expect(local.get_by_text("Passkey removed: Laptop.")).to_be_visible()


async def test_the_browser_offers_a_passkey_with_the_email_field(
    local: async_api.Page, authenticator: Authenticator, dev: dev_service.DevService
) -> None:
    _, login = await dev.new_account()
    await logins.log_in(local, login)
    await add_passkey(local, "Laptop")
    # The finger on the authenticator chooses what is offered.
    await logins.open_account_menu(local)
    await local.get_by_role("button", name="Log out").click()
    await expect(local.locator(".current-user")).to_contain_text(login.email)


@pytest.mark.usefixtures("authenticator")
async def test_a_device_keeps_one_passkey_of_a_login(local: async_api.Page, dev: dev_service.DevService) -> None:
    _, login = await dev.new_account()
    await logins.log_in(local, login)
    await add_passkey(local, "Laptop")
    await local.get_by_label("Name", exact=True).fill("Again")
    await local.get_by_role("button", name="Add passkey").click()
    await expect(local.get_by_role("alert")).to_have_text("This device already has a passkey for your login.")


async def test_a_form_that_needs_a_confirmation_keeps_its_input_and_is_sent_again(
    local: async_api.Page, dev: dev_service.DevService
) -> None:
    _, login = await dev.new_account()
    await logins.log_in(local, login)
    await forget_proofs(local, dev, login)
    await local.goto("/credentials#new-credential")
    await local.get_by_label("Name", exact=True).fill("kept")
    button = local.get_by_role("button", name="Create credential")
    await button.click()
    proof = local.get_by_role("dialog", name="Confirm it’s you to continue")
    await expect(proof.get_by_label("Password")).to_be_focused()
    await axe.check(local)
    await proof.get_by_label("Password").fill("wrong")
    await proof.get_by_role("button", name="Confirm").click()
    await expect(proof.get_by_role("alert")).to_have_text("Password: incorrect")
    await proof.get_by_role("button", name="Cancel").click()
    await expect(button).to_be_focused()
    await button.click()
    await proof.get_by_label("Password").fill(login.password)
    await proof.get_by_role("button", name="Confirm").click()
    await expect(local.get_by_role("heading", name="kept")).to_be_visible()


@pytest.mark.usefixtures("authenticator")
async def test_a_download_waits_for_a_confirmation_by_passkey(
    local: async_api.Page, dev: dev_service.DevService
) -> None:
    _, login = await dev.new_account()
    await logins.log_in(local, login)
    await add_passkey(local, "Laptop")
    await forget_proofs(local, dev, login)
    await local.goto("/credits")
    await local.get_by_role("link", name="Export CSV").click()
    await local.wait_for_url("**/confirm?next=/credits/ledger.csv")
    await local.get_by_role("button", name="Use a passkey").click()
    async with local.expect_download() as download:
        await local.get_by_role("link", name="Continue").click()
    assert (await download.value).suggested_filename.endswith(".csv")


async def test_at_an_address_without_a_host_name_passkeys_are_not_offered(
    visitor: async_api.Page, dev: dev_service.DevService
) -> None:
    await visitor.goto("/login")
    await expect(visitor.get_by_role("button", name="Log in", exact=True)).to_be_visible()
    await expect(visitor.get_by_role("button", name="Log in with a passkey")).to_be_hidden()
