"""At noon a provider blocks one of two source addresses: nothing is lost, and the operator hears of it once."""

from pathlib import Path

from playwright import async_api

from tests.browser import incident


async def test_a_provider_blocks_one_of_two_addresses(tmp_path: Path, browser: async_api.Browser) -> None:
    pictures = []

    async def picture(tab: async_api.Page, name: str) -> None:
        del tab
        pictures.append(name)

    async with incident.beginning(tmp_path) as running:
        context = await browser.new_context(base_url=running.base_url)
        await incident.run(running, await context.new_page(), picture)
        await context.close()
        assert len(running.notices()) == 1
    page = (Path(__file__).parents[2] / "docs" / "troubleshooting.md").read_text()
    assert [name for name in pictures if f"(assets/incident/{name}.png)" not in page] == []
