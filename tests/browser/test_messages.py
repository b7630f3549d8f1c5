"""The list of messages in a real browser: the search box and the filters, the peek, and mail that appears by itself."""

import re
from urllib import parse

from playwright import async_api

from postroad.model.units import times
from postroad.services.messages import queue_changes
from tests.browser import axe, dev_service, page_monitor, sent_messages
from tests.browser.conftest import Opener

expect = async_api.expect


# The rows whose whole height is in the window.
VISIBLE_ROWS = """() => [...document.querySelectorAll(".messages tbody tr")]
    .filter((row) => row.getBoundingClientRect().bottom <= 900).length"""


async def without_pauses(page: async_api.Page) -> None:
    """The list as it mostly is: what the operator of this service has paused is said above it."""
    await page.locator("#pauses").evaluate("notices => notices.replaceChildren()")


async def test_a_search_is_typed_and_sent_with_the_keyboard_alone(page: async_api.Page) -> None:
    await page.goto("/messages")
    await without_pauses(page)
    assert await page.evaluate(VISIBLE_ROWS) >= 18
    await page.keyboard.press("/")
    box = page.get_by_role("searchbox")
    await expect(box).to_be_focused()
    await page.keyboard.type("invoice status:delivered")
    await page.keyboard.press("Enter")
    await page.wait_for_url(re.compile(r"\?search=invoice"))
    await expect(box).to_have_value("invoice status:delivered")
    await expect(page.locator("td.subject").first).to_contain_text(re.compile("invoice", re.IGNORECASE))
    subjects = await page.locator("td.subject").all_inner_texts()
    assert subjects
    assert all("invoice" in subject.lower() for subject in subjects)
    # In the box it is a character like any other.
    await box.press("End")
    await box.press("/")
    await expect(box).to_have_value("invoice status:delivered/")


async def test_on_a_phone_the_list_begins_in_the_upper_half(page: async_api.Page) -> None:
    await page.set_viewport_size({"width": 390, "height": 844})
    await page.goto("/messages")
    await without_pauses(page)
    first = await page.locator(".messages tbody tr").first.bounding_box()
    assert first is not None
    assert first["y"] < 422
    await page.get_by_label("Accepted").select_option("Last 7 days")
    await expect(page.get_by_role("searchbox")).to_have_value("after:7d")
    await axe.check(page)


def search_of(page: async_api.Page) -> str:
    """The search in the address of the page."""
    return parse.parse_qs(parse.urlsplit(page.url).query).get("search", [""])[0]


async def test_a_filter_acts_at_once_and_keeps_the_focus(open_page: Opener, dev: dev_service.DevService) -> None:
    account, login = await dev.new_account()
    for number, to in enumerate(("ada@example.net", "bounce@example.net", "bob@example.net")):
        await sent_messages.send(dev, account.id, to=(to,), subject=f"Order {number}")
    page = await open_page(login)
    await page.goto("/messages")
    await page.evaluate("window.marked = true")
    rows, box = page.locator("#results tbody tr"), page.get_by_role("searchbox")
    await expect(page.locator(".status-delivered")).to_have_count(2)
    await expect(page.locator(".status-bounced")).to_have_count(1)
    await expect(page.get_by_role("button", name="Search")).to_be_hidden()
    # Typed, letter by letter.
    await box.press_sequentially("order 2")
    await expect(rows).to_have_count(1)
    await expect(box).to_be_focused()
    await expect(box).to_have_value("order 2")
    assert search_of(page) == "order 2"
    await box.press("Backspace")
    await expect(rows).to_have_count(3)
    # Chosen with the keyboard.
    status = page.get_by_label("Status")
    await status.focus()
    await status.select_option("bounced")
    await expect(rows).to_have_count(1)
    await expect(rows).to_contain_text("bounce@example.net")
    await expect(status).to_be_focused()
    await expect(status.locator("option:checked")).to_have_text("Bounced (1)")
    await expect(box).to_have_value("status:bounced order")
    await page.get_by_label("Mode").select_option("Test mail")
    await expect(page.get_by_role("heading", name="No messages match")).to_be_visible()
    await axe.check(page)
    # What helps is a link.
    await page.get_by_role("link", name="Without mode:test").click()
    await expect(rows).to_have_count(1)
    assert search_of(page) == "status:bounced order"


async def test_a_mistake_shows_when_somebody_stops_typing(
    open_page: Opener, dev: dev_service.DevService, monitor: page_monitor.PageMonitor
) -> None:
    monitor.expect(r"^console: Failed to load resource: .* 400 ")
    page = await open_page(dev.login)
    await page.goto("/messages")
    box, mistake = page.get_by_role("searchbox"), page.locator("#problem")
    await box.press_sequentially("stauts:failed")
    await box.press("Enter")
    await expect(mistake).to_contain_text("did you mean status:")
    await expect(box).to_have_attribute("aria-invalid", "true")
    await expect(box).to_be_focused()
    await box.fill("status:failed")
    await expect(mistake).to_be_hidden()
    await expect(box).not_to_have_attribute("aria-invalid", "true")


async def test_a_custom_range_is_chosen_with_two_dates(page: async_api.Page) -> None:
    await page.goto("/messages")
    first, last = page.get_by_label("From", exact=True), page.get_by_label("To", exact=True)
    await expect(first).to_be_hidden()
    await page.get_by_label("Accepted").select_option("Custom range")
    await expect(first).to_be_visible()
    await expect(page.get_by_role("searchbox")).to_have_value(re.compile(r"^after:\d{4}-\d{2}-\d{2}$"))
    await first.fill("2020-02-01")
    await expect(page.get_by_role("searchbox")).to_have_value("after:2020-02-01")
    await last.fill("2020-02-29")
    await expect(page.get_by_role("heading", name="No messages match")).to_be_visible()
    assert search_of(page) == "after:2020-02-01 before:2020-03-01"
    await axe.check(page)
    await page.reload()
    await expect(first).to_have_value("2020-02-01")
    await expect(last).to_have_value("2020-02-29")
    await page.get_by_label("Accepted").select_option("Any time")
    await expect(page.locator("#results tbody tr").first).to_be_visible()
    await expect(first).to_be_hidden()


async def test_a_message_is_peeked_at_and_the_arrows_step(page: async_api.Page) -> None:
    await page.goto("/messages")
    rows, peek = page.locator("#results a.row-link"), page.get_by_role("complementary", name="Peek")
    titles = [await rows.nth(place).get_attribute("title") or "" for place in range(3)]
    await page.keyboard.press("j")
    await page.keyboard.press(" ")
    await expect(peek.get_by_role("heading", name=titles[0], exact=True)).to_be_visible()
    await expect(peek.get_by_role("heading", name="Timeline")).to_be_visible()
    await expect(rows.nth(0)).to_be_focused()
    await axe.check(page)
    for key, place in (("ArrowDown", 1), ("j", 2), ("ArrowUp", 1)):
        await page.keyboard.press(key)
        await expect(rows.nth(place)).to_be_focused()
        await expect(peek.get_by_role("heading", name=titles[place], exact=True)).to_be_visible()
        await expect(page.locator("#results tr[aria-current]")).to_have_count(1)
    address = await rows.nth(1).get_attribute("href")
    await expect(peek.get_by_role("link", name="Open message")).to_have_attribute("href", re.compile(f"{address}$"))
    await expect(peek.get_by_role("link", name="Preview")).to_have_attribute("href", re.compile(f"{address}#preview$"))
    await page.keyboard.press("Escape")
    await expect(peek).to_be_hidden()
    await expect(rows.nth(1)).to_be_focused()
    # With the pointer; a click on the row opens the page.
    await rows.nth(2).hover()
    await page.get_by_role("button", name=re.compile("^Peek at")).nth(2).click()
    await expect(peek.get_by_role("heading", name=titles[2], exact=True)).to_be_visible()
    await peek.get_by_role("button", name="Previous message").click()
    await expect(peek.get_by_role("heading", name=titles[1], exact=True)).to_be_visible()
    await peek.get_by_role("button", name="Close").click()
    await expect(peek).to_be_hidden()
    await rows.nth(1).click()
    await page.wait_for_url(f"**{address}")


async def test_the_peek_follows_what_happens_to_its_message(open_page: Opener, dev: dev_service.DevService) -> None:
    account, login = await dev.new_account()
    message_id = await sent_messages.send(dev, account.id, send_at=times.to_wire(dev.ctx.clock() + times.HOUR))
    page = await open_page(login)
    await page.goto("/messages")
    await page.keyboard.press("j")
    await page.keyboard.press(" ")
    peek = page.get_by_role("complementary", name="Peek")
    await expect(peek.locator(".status-scheduled")).to_be_visible()
    await queue_changes.cancel_message(dev.ctx, account.id, message_id)
    await expect(peek.locator(".status-canceled")).to_be_visible()


async def test_the_live_log_is_a_view_of_messages(page: async_api.Page) -> None:
    await page.goto("/messages?search=status:delivered")
    await page.get_by_role("link", name="Live log").click()
    await expect(page.get_by_text("Events as they happen.")).to_be_visible()
    await expect(page.get_by_role("searchbox")).to_have_value("status:delivered")
    await expect(page.get_by_role("link", name="Live log")).to_have_attribute("aria-current", "page")
    await page.get_by_role("searchbox").fill("zebra elephant")
    await expect(page.get_by_text("Nothing yet.")).to_be_visible()
    await expect(page.get_by_role("button", name="Pause")).to_be_visible()
    await page.get_by_role("searchbox").fill("")
    await expect(page.locator("#tail li").first).to_be_visible()
    await axe.check(page)
    # On a phone a line wraps, and what happened is on it.
    await page.set_viewport_size({"width": 390, "height": 844})
    assert await page.locator("#tail-box").evaluate("box => box.scrollWidth <= box.clientWidth")
    await page.get_by_role("link", name="List", exact=True).click()
    await expect(page.locator("#results tbody tr").first).to_be_visible()


async def test_a_new_message_appears_by_itself(open_page: Opener, dev: dev_service.DevService) -> None:
    account, login = await dev.new_account()
    page = await open_page(login)
    await page.goto("/messages")
    await expect(page.get_by_role("heading", name="No messages yet")).to_be_visible()
    await sent_messages.send(dev, account.id, subject="Here by itself")
    await expect(page.get_by_role("cell", name="Here by itself")).to_be_visible()
    await expect(page.locator(".status-delivered")).to_be_visible()
