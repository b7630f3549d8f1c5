"""Where things are in a real browser: nothing covers, breaks or leaves what it belongs to, on desktop and phone."""

from typing import Final

from playwright import async_api

from tests.browser import dev_service
from tests.browser.conftest import Opener

# Those of whose text a word is on more than one line.
BROKEN_WORDS: Final = """(nodes) => nodes.filter((node) => {
  const walker = document.createTreeWalker(node, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    for (const word of walker.currentNode.data.matchAll(/\\S+/g)) {
      const range = document.createRange();
      range.setStart(walker.currentNode, word.index);
      range.setEnd(walker.currentNode, word.index + word[0].length);
      if (new Set([...range.getClientRects()].map((box) => Math.round(box.top))).size > 1) return true;
    }
  }
  return false;
}).map((node) => node.textContent.trim())"""
# Cells of a table on a phone whose content begins before their label ends. What a label needs is measured with a copy.
COVERED_LABELS: Final = """() => [...document.querySelectorAll("td[data-label]")].filter((cell) => {
  if (!cell.checkVisibility()) return false;
  const style = getComputedStyle(cell, "::before");
  const copy = document.createElement("span");
  copy.textContent = cell.dataset.label;
  for (const name of ["font", "width", "whiteSpace", "overflowWrap"]) copy.style[name] = style[name];
  copy.style.display = "block";
  const content = document.createRange();
  content.selectNodeContents(cell);
  const begin = content.getBoundingClientRect().left - cell.getBoundingClientRect().left;
  cell.append(copy);
  const needed = copy.scrollWidth;
  copy.remove();
  const inset = parseFloat(getComputedStyle(document.documentElement).fontSize) * 1.2;
  return inset + needed > begin;
}).map((cell) => cell.dataset.label)"""


async def box(found: async_api.Locator) -> async_api.FloatRect:
    """Its place in the window."""
    place = await found.bounding_box()
    assert place is not None
    return place


async def test_the_people_of_an_account_are_whole_for_operators(
    page: async_api.Page, dev: dev_service.DevService
) -> None:
    await page.set_viewport_size({"width": 1440, "height": 900})
    await page.goto(f"/operator/accounts/{dev.account.id}")
    people = page.get_by_role("region", name="Users: table").locator("table")
    card, table = await box(page.locator("section", has=people).last), await box(people)
    assert table["x"] >= card["x"]
    assert table["x"] + table["width"] <= card["x"] + card["width"]
    assert await people.locator("td.name").count() > 1
    assert await people.locator("td.name").evaluate_all(BROKEN_WORDS) == []


async def test_the_open_menu_of_a_phone_leaves_find_alone(page: async_api.Page) -> None:
    await page.set_viewport_size({"width": 390, "height": 844})
    await page.goto("/domains")
    menu, find = page.locator(".menu > summary"), page.locator(".find-link")
    for is_open in (False, True):
        if is_open:
            await menu.click()
        first, second = await box(find), await box(menu)
        assert first["x"] + first["width"] <= second["x"], is_open
        assert abs(first["y"] + first["height"] / 2 - second["y"] - second["height"] / 2) < 8, is_open


async def test_labels_and_values_of_a_phone_do_not_cover_each_other(page: async_api.Page) -> None:
    await page.set_viewport_size({"width": 390, "height": 844})
    for path in ("/operator/providers", "/operator/accounts", "/keys", "/failures?period=30d"):
        await page.goto(path)
        assert await page.evaluate(COVERED_LABELS) == [], path


async def test_the_buttons_of_a_phone_are_not_broken_up(open_page: Opener, dev: dev_service.DevService) -> None:
    _, login = await dev.new_account()
    await open_page(login)
    page = await open_page(login, width=390, height=844)
    await page.goto("/profile")
    end = page.locator(".sessions button").first
    assert (await box(end))["height"] < 40
    assert await page.locator("button:visible, .button:visible").evaluate_all(BROKEN_WORDS) == []


async def test_whole_columns_do_not_flash_after_an_update(page: async_api.Page, dev: dev_service.DevService) -> None:
    for path in ("/operator", "/operator/queue", f"/operator/accounts/{dev.account.id}"):
        await page.goto(path)
        live = page.locator(".columns[data-live]")
        assert await live.count() > 0, path
        flashing = (
            "(all) => all.map((one) => { one.classList.add('fresh'); return getComputedStyle(one).animationName; })"
        )
        assert set(await live.evaluate_all(flashing)) == {"none"}, path
