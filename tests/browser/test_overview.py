"""The overview in a browser: charts that are drawn and can be pointed at, tables behind them, both themes, periods."""

import re

from playwright import async_api

from tests.browser import dev_service, logins
from tests.browser.conftest import Opener

expect = async_api.expect
# How many pixels of a chart are not empty.
INK = """canvas => {
  const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  let count = 0;
  for (let at = 3; at < data.length; at += 4) if (data[at]) count += 1;
  return count;
}"""
# The colour in the middle of the lowest part of the highest bar.
BAR = """canvas => {
  const { width, height } = canvas;
  const data = canvas.getContext("2d").getImageData(0, 0, width, height).data;
  const counts = {};
  for (let at = 0; at < data.length; at += 4) {
    if (data[at + 3] < 255) continue;
    const name = [data[at], data[at + 1], data[at + 2]].join(" ");
    counts[name] = (counts[name] || 0) + 1;
  }
  return Object.entries(counts).sort((one, other) => other[1] - one[1])[0][0];
}"""


async def test_all_charts_are_drawn(page: async_api.Page) -> None:
    await page.goto("/?period=30d")
    charts = page.locator("figure[data-chart] canvas")
    await expect(charts).to_have_count(2)
    for chart in await charts.all():
        assert await chart.evaluate(INK) > 1_000


async def test_pointing_at_a_bar_shows_what_is_in_it(page: async_api.Page) -> None:
    await page.goto("/?period=30d")
    figure = page.locator("figure[data-chart]").first
    tip = figure.locator(".chart-tip")
    await expect(tip).to_be_hidden()
    await figure.scroll_into_view_if_needed()
    await figure.locator(".u-over").hover()
    await expect(tip.locator(".chart-tip-title")).to_have_text(re.compile(r"\w{3}, \w{3} \d+"))
    row = figure.locator("tbody tr").nth(15)
    assert await tip.locator("b").all_text_contents() == (await row.locator("td").all_text_contents())[1:]
    names = await tip.locator("span").all_text_contents()
    assert names == ["Delivered", "Bounced", "Failed", "Delivery rate"]
    await page.locator("h1").hover()
    await expect(tip).to_be_hidden()


async def test_the_arrow_keys_move_over_the_bars_and_enter_opens_one(page: async_api.Page) -> None:
    await page.goto("/?period=30d")
    figure = page.locator("figure[data-chart]").first
    chart, tip = figure.get_by_role("slider", name="Results"), figure.locator(".chart-tip")
    rows = figure.locator("tbody tr")
    await chart.focus()
    for key, at in (("Home", 0), ("ArrowRight", 1), ("End", 29), ("ArrowRight", 29), ("ArrowLeft", 28)):
        await chart.press(key)
        await expect(chart).to_have_attribute("aria-valuenow", str(at))
        assert await tip.locator("b").first.text_content() == await rows.nth(at).locator("td").nth(1).text_content()
    assert ", Delivered " in str(await chart.get_attribute("aria-valuetext"))
    await chart.press("Escape")
    await expect(tip).to_be_hidden()
    await chart.press("ArrowLeft")
    await expect(tip).to_be_visible()
    link = await rows.nth(29).locator("a").first.get_attribute("href")
    await chart.press("Enter")
    await expect(page).to_have_url(re.compile(re.escape(str(link))))


async def test_the_table_behind_a_chart_has_its_sums(page: async_api.Page) -> None:
    await page.goto("/?period=30d")
    figure = page.locator("figure[data-chart]").first
    await figure.get_by_text("Show as table").click()
    await expect(figure.get_by_role("table")).to_be_visible()
    cells = await figure.locator("tbody td:nth-child(2)").all_text_contents()
    assert len(cells) == 30
    total = sum(int(cell.replace(",", "")) for cell in cells)
    assert total > 0
    await expect(figure.locator(".legend b").first).to_have_text(f"{total:,}")


async def test_charts_take_the_colours_of_the_theme(open_page: Opener, dev: dev_service.DevService) -> None:
    page = await open_page(dev.login)  # whose choice is kept
    await page.goto("/?period=30d")
    chart = page.locator("figure[data-chart] canvas").first
    light = await chart.evaluate(BAR)
    await logins.open_account_menu(page)
    await page.get_by_role("radio", name="Dark").check()
    await expect(page.locator("figure[data-chart] canvas")).to_have_count(2)
    dark = await page.locator("figure[data-chart] canvas").first.evaluate(BAR)
    assert light != dark


async def test_charts_follow_the_width_of_the_window(page: async_api.Page) -> None:
    await page.goto("/")
    chart = page.locator("figure[data-chart] .uplot").first
    await page.set_viewport_size({"width": 390, "height": 844})
    await page.wait_for_function("() => document.querySelector('.uplot').getBoundingClientRect().width < 350")
    assert await chart.evaluate(
        "plot => plot.getBoundingClientRect().right <= plot.parentElement.getBoundingClientRect().right + 1"
    )


async def test_a_tile_and_a_bar_lead_to_the_messages_that_they_count(page: async_api.Page) -> None:
    await page.goto("/?period=30d")
    delivered = page.locator(".tile", has=page.get_by_role("link", name="Delivered", exact=True))
    figure = page.locator("figure[data-chart]").first
    per_day = [int(cell.replace(",", "")) for cell in await figure.locator("tbody td:nth-child(2)").all_text_contents()]
    await expect(delivered).to_contain_text(f"{sum(per_day):,} of ")
    tile = page.locator(".tile", has=page.get_by_role("link", name="Messages", exact=True))
    counted = int((await tile.locator(".figure").inner_text()).replace(",", ""))
    await tile.click()
    await expect(page.get_by_role("searchbox")).to_have_value(re.compile(r"^after:\d{4}-\d{2}-\d{2}T\d{2}:\d{2}Z$"))
    await expect(page.locator("#count")).to_have_text(f"{counted:,} messages")
    await page.go_back()
    await figure.scroll_into_view_if_needed()
    await figure.locator(".u-over").click()
    await expect(page.get_by_role("searchbox")).to_have_value(re.compile(r"^after:\S+Z before:\S+Z$"))


async def test_without_scripts_everything_is_there_but_the_drawings(
    browser: async_api.Browser, dev: dev_service.DevService
) -> None:
    session = await logins.session_of(dev, dev.login)
    context = await browser.new_context(base_url=dev.base_url, java_script_enabled=False, storage_state=session)
    try:
        page = await context.new_page()
        await page.goto("/?period=30d")
        await expect(page.locator("figure canvas")).to_have_count(0)
        await page.get_by_text("Show as table").first.click()
        await expect(page.get_by_role("region", name="Results as a table")).to_be_visible()
    finally:
        await context.close()
