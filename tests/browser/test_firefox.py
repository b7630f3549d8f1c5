"""Every page in a second engine: it opens without an error, its scripts run, and the palette finds."""

from pathlib import Path

from postroad.dashboard.framework import cookies
from tests.browser import dev_service, firefox, logins, pages, skip_report

SHOWN = "document.querySelector('main').innerText.toLowerCase()"
OPTION = "document.querySelector('#palette [aria-selected]')?.textContent === 'Audit log'"


async def test_every_page_works_in_firefox(dev: dev_service.DevService, tmp_path: Path) -> None:
    program = firefox.find()
    if program is None:
        skip_report.skip("tests in Firefox", because="none was found", remedy=firefox.REMEDY)
    session = await logins.session_of(dev, dev.login)
    async with firefox.running(program, tmp_path, dev.base_url) as tab:
        await tab.begin(cookies.SESSION, session["cookies"][0]["value"])
        for page in pages.PAGES:
            if page.as_visitor:
                continue
            await tab.goto(pages.path_of(page, dev))
            assert pages.text_of(page, dev).lower() in await tab.evaluate(SHOWN), page.name
            assert not page.is_inside or await tab.evaluate("'openPalette' in window.postroad"), page.name
            assert tab.problems == [], page.name
        await tab.goto("/domains")
        await tab.press(firefox.CONTROL, "k")
        for character in "audit":
            await tab.press(character)
        await tab.until(OPTION)
        await tab.press(firefox.ENTER)
        await tab.until("location.pathname === '/audit-log' && document.readyState === 'complete'")
        assert tab.problems == []
