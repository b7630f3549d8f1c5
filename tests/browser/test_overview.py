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
    await expect(charts).to_have_count(3)
    for chart in await charts.all():
        assert await chart.evaluate(INK) > 1_000


async def test_pointing_at_a_bar_shows_what_is_in_it(page: async_api.Page) -> None:
    await page.goto("/?period=30d")
    figure = page.locator("figure[data-chart]").nth(1)
    value = figure.locator(".key-delivered b")
    total = await value.inner_text()
    await figure.scroll_into_view_if_needed()
    await figure.locator(".u-over").hover()
    await expect(figure.locator(".legend-time")).to_have_text(re.compile(r"\w{3}, \w{3} \d+"))
    shown = await value.inner_text()
    cells = await figure.locator("tbody td:nth-child(2)").all_text_contents()
    assert shown in cells
    await page.locator("h1").hover()
    await expect(figure.locator(".legend-time")).to_have_text("last 30 days")
    await expect(value).to_have_text(total)


async def test_the_table_behind_a_chart_has_its_sums(page: async_api.Page) -> None:
    await page.goto("/?period=30d")
    figure = page.locator("figure[data-chart]").first
    await figure.get_by_text("Show as table").click()
    await expect(figure.get_by_role("table")).to_be_visible()
    cells = await figure.locator("tbody td:nth-child(2)").all_text_contents()
    assert len(cells) == 30
    total = sum(int(cell.replace(",", "")) for cell in cells)
    assert total > 0
    await expect(figure.locator(".legend b")).to_have_text(f"{total:,}")


async def test_charts_take_the_colours_of_the_theme(open_page: Opener, dev: dev_service.DevService) -> None:
    page = await open_page(dev.login)  # whose choice is kept
    await page.goto("/?period=30d")
    chart = page.locator("figure[data-chart] canvas").first
    light = await chart.evaluate(BAR)
    await logins.open_account_menu(page)
    await page.get_by_role("radio", name="Dark").check()
    await expect(page.locator("figure[data-chart] canvas")).to_have_count(3)
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
    tile = page.locator(".tile", has=page.get_by_role("link", name="Messages", exact=True))
    counted = int((await tile.locator(".figure").inner_text()).replace(",", ""))
    figure = page.locator("figure[data-chart]").first
    per_day = [int(cell.replace(",", "")) for cell in await figure.locator("tbody td:nth-child(2)").all_text_contents()]
    assert sum(per_day) == counted
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
        await expect(page.get_by_role("region", name="Messages accepted as a table")).to_be_visible()
    finally:
        await context.close()
