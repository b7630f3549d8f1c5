"""What happens elsewhere shows on open pages by itself, and whoever reads them is not disturbed."""

import httpx
from playwright import async_api

from postroad.model.people import callers
from postroad.services.domains import domain_registry as domains
from postroad.services.people import api_keys, credentials
from tests.browser import dev_service
from tests.browser.conftest import Opener

expect = async_api.expect
# As a browser does when another tab is chosen.
HIDDEN = """isHidden => {
  Object.defineProperty(document, "hidden", { value: isHidden, configurable: true });
  document.dispatchEvent(new Event("visibilitychange"));
}"""
FIRST_FIGURE = "#tiles .figure >> nth=0"


class Shop:
    """An application that sends over the API, from an account of its own."""

    def __init__(self, dev: dev_service.DevService, key: str, sender: str) -> None:
        self._url = f"{dev.base_url}/emails"
        self._headers = {"Authorization": f"Bearer {key}"}
        self._sender = sender
        self._count = 0

    async def send(self, to: str = "ada@example.net") -> None:
        """One message more."""
        self._count += 1
        message = {"from": self._sender, "to": to, "subject": "Hello", "text": "Hello."}
        async with httpx.AsyncClient(headers={**self._headers, "Idempotency-Key": str(self._count)}) as client:
            (await client.post(self._url, json=message)).raise_for_status()


async def open_shop(dev: dev_service.DevService) -> tuple[Shop, dev_service.Login]:
    account, login = await dev.new_account()
    credential, _ = await credentials.create(dev.ctx, account.id, "Shop")
    scopes = frozenset({callers.Permission.SEND})
    _, key = await api_keys.create(dev.ctx, account.id, credential_id=credential.id, name="Shop", scopes=scopes)
    (domain,) = await domains.of_account(dev.ctx, account.id)
    return Shop(dev, key, f"shop@{domain.name}"), login


async def mark(page: async_api.Page) -> None:
    """Leave something on the page that a reload would take away."""
    await page.evaluate("window.marked = true")


async def was_reloaded(page: async_api.Page) -> bool:
    return not await page.evaluate("Boolean(window.marked)")


async def test_two_open_pages_show_new_mail_without_a_reload(open_page: Opener, dev: dev_service.DevService) -> None:
    shop, login = await open_shop(dev)
    await shop.send()
    first, second = await open_page(login), await open_page(login)
    for page in (first, second):
        await page.goto("/")
        await mark(page)
        await expect(page.locator("#tiles")).to_contain_text("1 of 1")
    await shop.send()
    for page in (first, second):
        await expect(page.locator(FIRST_FIGURE)).to_have_text("2")
        await expect(page.locator("#tiles")).to_contain_text("2 of 2")
        await expect(page.locator("figure[data-chart] canvas")).to_have_count(2)
        assert not await was_reloaded(page)


async def test_the_first_mail_turns_the_greeting_into_figures(open_page: Opener, dev: dev_service.DevService) -> None:
    shop, login = await open_shop(dev)
    page = await open_page(login)
    await page.goto("/")
    await mark(page)
    await expect(page.locator("#first-mail")).to_contain_text("Send your first email")
    await shop.send()
    await expect(page.locator("#tiles")).to_contain_text("1 of 1")
    await expect(page.get_by_role("navigation", name="Period")).to_be_visible()
    await expect(page.locator("#first-mail")).to_be_empty()
    assert not await was_reloaded(page)


async def test_whoever_reads_a_part_stays_where_they_are(open_page: Opener, dev: dev_service.DevService) -> None:
    shop, login = await open_shop(dev)
    await shop.send()
    page = await open_page(login)
    await page.goto("/")
    await expect(page.locator("#tiles")).to_contain_text("1 of 1")
    summary = page.get_by_text("Show as table").first
    await summary.click()
    await summary.focus()
    await shop.send()
    await expect(page.locator("#charts .legend b").first).to_have_text("2")
    await expect(page.get_by_role("region", name="Results as a table")).to_be_visible()
    await expect(summary).to_be_focused()


async def test_what_has_not_changed_is_left_alone(open_page: Opener, dev: dev_service.DevService) -> None:
    shop, login = await open_shop(dev)
    await shop.send("bounce@example.net")
    page = await open_page(login)
    await page.goto("/")
    await expect(page.locator("#failures time")).to_have_count(1)
    await page.evaluate("for (const id of ['periods', 'failures']) document.getElementById(id).isMarked = true")
    await shop.send()
    await expect(page.locator("#tiles")).to_contain_text("1 of 2")
    for name in ("periods", "failures"):
        assert await page.evaluate("id => document.getElementById(id).isMarked", name)
    assert not await page.evaluate("document.getElementById('tiles').isMarked")


async def test_a_page_that_comes_back_into_view_catches_up(open_page: Opener, dev: dev_service.DevService) -> None:
    shop, login = await open_shop(dev)
    await shop.send()
    page = await open_page(login)
    await page.goto("/")
    await expect(page.locator("#tiles")).to_contain_text("1 of 1")
    await page.evaluate(HIDDEN, arg=True)
    await shop.send()
    await page.evaluate(HIDDEN, arg=False)
    await expect(page.locator("#tiles")).to_contain_text("2 of 2")


async def test_new_messages_wait_behind_a_link_and_nothing_moves_under_the_pointer(
    open_page: Opener, dev: dev_service.DevService
) -> None:
    shop, login = await open_shop(dev)
    await shop.send("greylist@example.net")
    page, other = await open_page(login), await open_page(login)
    for one in (page, other):
        await one.goto("/messages")
        await mark(one)
    link, row = page.locator("[data-new-rows]"), page.locator("#results tbody tr")
    await row.locator("a").focus()
    await row.hover()
    place = await row.bounding_box()
    await other.get_by_role("button", name="Pause").click()
    await shop.send()
    await shop.send()
    await expect(link).to_have_text("2 new")
    await expect(row).to_have_count(1)
    assert await row.bounding_box() == place
    await expect(row.locator("a")).to_be_focused()
    # The paused page has heard of nothing.
    await expect(other.locator("[data-new-rows]")).to_be_hidden()
    await link.click()
    await expect(row).to_have_count(3)
    await expect(link).to_be_hidden()
    await other.get_by_role("button", name="Resume").click()
    await expect(other.locator("[data-new-rows]")).to_have_text("2 new")
    assert not await was_reloaded(page)
    # What changes without scripts is the same link.
    assert await link.get_attribute("href") == "/messages"


async def test_the_tail_appends_lines_as_they_happen(open_page: Opener, dev: dev_service.DevService) -> None:
    shop, login = await open_shop(dev)
    page = await open_page(login)
    await page.goto("/tail")
    await mark(page)
    await expect(page.get_by_text("Nothing yet.")).to_be_visible()
    await shop.send("bounce@example.net")
    await expect(page.locator("#tail .event")).to_have_text(["accepted", "bounced"])
    await expect(page.get_by_text("Nothing yet.")).to_be_hidden()
    assert not await was_reloaded(page)
