"""Into the dashboard: by the login page, as a user does, or with a session as the service would have given it."""

import contextlib
from collections.abc import AsyncIterator

from playwright import async_api

from postroad.dashboard.framework import cookies
from postroad.services.accounts import view_as
from postroad.services.people import sessions, users
from tests import contexts
from tests.browser.dev_service import DevService, Login


async def log_in(page: async_api.Page, login: Login) -> None:
    """Fill in the login page, wherever this page is, and wait until the dashboard is there."""
    await page.goto("/login")
    await page.fill("input[name=email]", login.email)
    await page.fill("input[name=password]", login.password)
    await page.click("main button[type=submit]")
    await page.wait_for_url(lambda url: "/login" not in url)


async def open_account_menu(page: async_api.Page) -> None:
    """The menu at the foot of the page, with the profile, the theme, other accounts and the way out."""
    await page.locator(".current-user > summary").click()


async def log_out(page: async_api.Page) -> None:
    await open_account_menu(page)
    await page.get_by_role("button", name="Log out").click()
    await page.wait_for_url(lambda url: "/login" in url)


@contextlib.asynccontextmanager
async def viewing(dev: DevService, context: async_api.BrowserContext, account_id: str) -> AsyncIterator[None]:
    """The user of a browser context, who is an operator, looks at an account; without a page that asks for it."""
    (token,) = [one["value"] for one in await context.cookies(dev.base_url) if one["name"] == cookies.SESSION]
    _, session = await sessions.authenticate(dev.ctx, token)
    look = await view_as.begin(dev.ctx, session, account_id)
    await context.add_cookies([{"name": cookies.VIEW_AS, "value": view_as.write(dev.ctx, look), "url": dev.base_url}])
    try:
        yield
    finally:
        await context.clear_cookies(name=cookies.VIEW_AS)


async def session_of(dev: DevService, login: Login) -> async_api.StorageState:
    """What a new browser context needs in order to be this user; costs no page and no password."""
    user = await users.by_email(dev.ctx, login.email)
    assert user is not None
    session = await contexts.begin_session(dev.ctx, user)
    cookie: async_api.StorageStateCookie = {
        "name": cookies.SESSION,
        "value": session.token,
        "domain": "127.0.0.1",
        "path": "/",
        "expires": -1,
        "httpOnly": True,
        "secure": False,
        "sameSite": "Lax",
    }
    return {"cookies": [cookie], "origins": []}
