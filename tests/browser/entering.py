"""Logging in as a person does, once for each person of a worker; later pages take the session along."""

from playwright import async_api

from tests.browser.houses import Login


async def log_in(page: async_api.Page, login: Login) -> None:
    """Fill in the login page, wherever this page is, and wait until the dashboard is there."""
    await page.goto("/login")
    await page.fill("input[name=email]", login.email)
    await page.fill("input[name=password]", login.password)
    await page.click("main button[type=submit]")
    await page.wait_for_url(lambda url: "/login" not in url)


class Sessions:
    """The cookies of those who have logged in."""

    def __init__(self, browser: async_api.Browser, base_url: str) -> None:
        self._browser = browser
        self._base_url = base_url
        self._known: dict[Login, async_api.StorageState] = {}

    async def of(self, login: Login) -> async_api.StorageState:
        """What a new browser context needs in order to be this person."""
        if login not in self._known:
            context = await self._browser.new_context(base_url=self._base_url)
            try:
                await log_in(await context.new_page(), login)
                self._known[login] = await context.storage_state()
            finally:
                await context.close()
        return self._known[login]
