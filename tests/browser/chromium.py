"""A real Chromium, found on this machine and driven by playwright, whose own download is never used.

`chromium-headless-shell` comes first: the same engine without a window, for two thirds of the CPU time.
The flags keep it at home: it speaks to nobody but the page's own server.
"""

import contextlib
import os
import shutil
from collections.abc import AsyncIterator, Mapping
from typing import Final

from playwright import async_api

NAMES: Final = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
REMEDY: Final = (
    "install with: apt-get install chromium-headless-shell (or chromium), or name one with POSTROAD_CHROMIUM"
)
FLAGS: Final = (
    "--no-sandbox",  # in a container it has no right to one; it opens nothing but our own pages
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",  # containers give it 64 MB there
    "--force-color-profile=srgb",  # the same colours on every machine
    "--disable-lcd-text",  # and letters without coloured edges, which make pictures larger
    # All pages are ours: without a process for each of them, a tenth of the work is saved.
    "--disable-site-isolation-trials",
    "--renderer-process-limit=1",
)


def find(environment: Mapping[str, str] = os.environ) -> str | None:
    """The program, or None; who names one gets that one and no other."""
    named = environment.get("POSTROAD_CHROMIUM")
    if named:
        return shutil.which(named)
    return next((found for name in NAMES if (found := shutil.which(name))), None)


@contextlib.asynccontextmanager
async def running(program: str) -> AsyncIterator[async_api.Browser]:
    """A browser without a window, closed at the end."""
    async with async_api.async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=program, args=list(FLAGS))
        try:
            yield browser
        finally:
            await browser.close()
