"""Into the dashboard: by the login page, as a user does, or with a session as the service would have given it."""

from playwright import async_api

from postroad.dashboard import cookies
from postroad.services.auth import sessions, users
from tests.browser.dev_service import DevService, Login


async def log_in(page: async_api.Page, login: Login) -> None:
    """Fill in the login page, wherever this page is, and wait until the dashboard is there."""
    await page.goto("/login")
    await page.fill("input[name=email]", login.email)
    await page.fill("input[name=password]", login.password)
    await page.click("main button[type=submit]")
    await page.wait_for_url(lambda url: "/login" not in url)


async def session_of(dev: DevService, login: Login) -> async_api.StorageState:
    """What a new browser context needs in order to be this user; costs no page and no password."""
    user = await users.by_email(dev.ctx, login.email)
    assert user is not None
    session = sessions.begin(dev.ctx, user)
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
