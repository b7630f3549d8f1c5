"""Single sign-on in a real browser with a real provider: set up, test, log in, log out, and new keys."""

import contextlib
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest_asyncio
from playwright import async_api

from postroad.cli.dev import demo_account
from postroad.cli.framework import data_folder
from postroad.roles import composition
from postroad.services.domains import domain_registry
from tests.browser import logins, oidc_process
from tests.browser.dev_service import DATA, Login
from tests.cli import cli_runner

TIMEOUT_MILLISECONDS = 300_000
SECRET = "of the tests"


@dataclass(slots=True)
class SsoService:
    """A service with a provider of its own; the demo account may use its domain, and has not set up anything."""

    base_url: str
    issuer: str
    login: Login
    clients: list[dict[str, Any]]
    stack: contextlib.AsyncExitStack

    async def rotate_keys(self) -> None:
        """Let the provider start again, with new keys."""
        await self.stack.aclose()
        port = int(self.issuer.rpartition(":")[2])
        await self.stack.enter_async_context(oidc_process.running(self.clients, port=port))


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


@pytest_asyncio.fixture(loop_scope="session")
async def sso(browser: async_api.Browser, tmp_path: Path) -> AsyncIterator[SsoService]:
    """The service and the provider, each in a process of its own."""
    del browser  # without one, nothing is started
    oidc_process.skip_without()
    data = data_folder.DataFolder(tmp_path / DATA)
    data.prepare()
    async with composition.open_context(data.settings(environment={})) as ctx:
        info = await demo_account.prepare(ctx, None)
        data.write_info(info)
        account = await demo_account.account_of(ctx)
        await domain_registry.add(ctx, account.id, "corp.example", verified=True)
    login = Login(info.login.email, info.login.password)
    port = free_port()
    base_url = f"http://127.0.0.1:{port}"
    clients = [
        {
            "client_id": name,
            "client_secret": SECRET,
            "redirect_uris": [f"{base_url}/sso/{connection}/callback"],
            "post_logout_redirect_uris": [f"{base_url}/login"],
        }
        for name, connection in (("account", account.id), ("installation", "installation"))
    ]
    async with contextlib.AsyncExitStack() as stack:
        listening = await stack.enter_async_context(oidc_process.running(clients))
        environment = {
            "POSTROAD_SSO__ISSUER": f"http://127.0.0.1:{listening}",
            "POSTROAD_SSO__CLIENT_ID": "installation",
            "POSTROAD_SSO__CLIENT_SECRET": SECRET,
            "POSTROAD_SSO__EMAIL_DOMAINS": "staff.example",
            "POSTROAD_SSO__ACCOUNT": account.id,
        }
        words = ("dev", "--http", f"127.0.0.1:{port}", "--smtp", "127.0.0.1:0")
        with cli_runner.Service(*words, folder=tmp_path, environment=environment) as service:
            service.wait_for(lambda: "started" in service.errors.read_text() or None, what="the start")
            yield SsoService(base_url, environment["POSTROAD_SSO__ISSUER"], login, clients, stack)
            code, _ = service.stop()
            assert code == 0, service.errors.read_text()


@pytest_asyncio.fixture(loop_scope="session")
async def owner(browser: async_api.Browser, sso: SsoService) -> AsyncIterator[async_api.Page]:
    """A page of the owner of the account, logged in with the password."""
    async with open_page(browser, sso) as page:
        await logins.log_in(page, sso.login)
        yield page


@contextlib.asynccontextmanager
async def open_page(
    browser: async_api.Browser, sso: SsoService, *, scripts: bool = True
) -> AsyncIterator[async_api.Page]:
    """A page of somebody with a browser of their own."""
    async with await browser.new_context(base_url=sso.base_url, java_script_enabled=scripts) as context:
        context.set_default_timeout(TIMEOUT_MILLISECONDS)
        yield await context.new_page()


async def begin(page: async_api.Page, email: str) -> None:
    """From the login page to the provider."""
    await page.goto("/login?next=/domains")
    await page.get_by_role("link", name="Log in with single sign-on").click()
    await page.fill("input[name=email]", email)
    await page.get_by_role("button", name="Continue").click()


async def test_an_owner_connects_a_provider_and_people_log_in_and_out_with_it(
    browser: async_api.Browser, sso: SsoService, owner: async_api.Page
) -> None:
    await owner.goto("/team")
    await owner.get_by_role("link", name="single sign-on").click()
    await owner.fill("input[name=issuer]", sso.issuer)
    await owner.fill("input[name=client_id]", "account")
    await owner.fill("input[name=client_secret]", SECRET)
    await owner.get_by_label("corp.example").check()
    await owner.get_by_label("Create users at their first login").check()
    await owner.fill("textarea[name=groups]", "jo = developer")
    await owner.get_by_role("button", name="Save").click()
    await async_api.expect(owner.get_by_text("Single sign-on saved.")).to_be_visible()

    await owner.get_by_role("button", name="Test the connection").click()
    await oidc_process.log_in(owner, "jo@corp.example")
    await async_api.expect(owner.get_by_text("The connection works.")).to_be_visible()
    await async_api.expect(owner.get_by_text("developer", exact=True)).to_be_visible()
    await owner.goto("/team")
    await async_api.expect(owner.get_by_text("jo@corp.example")).to_have_count(0)

    async with open_page(browser, sso) as page:
        await begin(page, "jo@corp.example")
        await oidc_process.log_in(page, "jo@corp.example")
        await page.wait_for_url(f"{sso.base_url}/domains")
        await async_api.expect(page.locator(".current-user")).to_contain_text("jo@corp.example")

        await logins.open_account_menu(page)
        await page.get_by_role("button", name="Log out").click()
        await oidc_process.log_out(page)
        await page.wait_for_url(f"{sso.base_url}/login")
        await page.goto("/team")
        await page.wait_for_url(f"{sso.base_url}/login?next=/team")

        await sso.rotate_keys()
        await begin(page, "jo@corp.example")
        await oidc_process.log_in(page, "jo@corp.example")
        await page.wait_for_url(f"{sso.base_url}/domains")


async def test_the_provider_of_the_installation_works_without_scripts(
    browser: async_api.Browser, sso: SsoService
) -> None:
    async with open_page(browser, sso, scripts=False) as page:
        await page.goto("/login/sso")
        await page.get_by_role("button", name="Use the identity provider of this service").click()
        await oidc_process.log_in(page, "kim@staff.example")
        await page.wait_for_url(f"{sso.base_url}/")
        await async_api.expect(page.locator(".current-user")).to_contain_text("kim@staff.example")
        await logins.open_account_menu(page)
        await page.get_by_role("button", name="Log out").click()
        await oidc_process.log_out(page)
        await page.wait_for_url(f"{sso.base_url}/login")
