"""`make screenshots`: a picture of every page, light and dark, on a desktop and on a phone, for docs/screenshots.

The service runs for real with the demo account of these tests, so the same pages come out every time but for the dates.
"""

import argparse
import asyncio
import collections
import contextlib
import io
import tempfile
from pathlib import Path
from typing import Final, Literal

from PIL import Image
from playwright import async_api

from tests.browser import chromium, dev_service, logins, pages

FOLDER: Final = Path(__file__).parent.parent.parent / "docs" / "screenshots"
MESSAGES: Final = 1_400
SCHEMES: Final[tuple[Literal["light", "dark"], ...]] = ("light", "dark")
SIZES: Final = {"desktop": (1280, 900), "phone": (390, 844)}
# A phone's page is shown as far down as anybody would scroll.
MAX_PIXELS: Final = 2000
EXACT_COLOURS: Final = 96
Color = tuple[int, int, int]
TWO_FRAMES: Final = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
# Checks of the installation take seconds.
TIMEOUT_MILLISECONDS: Final = 60_000
SETTLED: Final = f"() => document.fonts.ready.then(() => {TWO_FRAMES})"
INDEX: Final = """# What it looks like

Every page of the dashboard, with the demo account of the tests: light and dark, on a desktop and on a phone.
"""


async def take(
    browser: async_api.Browser, dev: dev_service.DevService, *, folder: Path, wanted: list[pages.Page]
) -> None:
    """Every wanted page, each in four pictures."""
    # By the login page, so that the picture of the team shows when.
    async with await browser.new_context(base_url=dev.base_url) as entrance:
        await logins.log_in(await entrance.new_page(), dev.login)
        session = await entrance.storage_state()
    kinds = [(scheme, size) for scheme in SCHEMES for size in SIZES]
    for scheme, size in kinds:
        width, height = SIZES[size]
        context = await browser.new_context(
            base_url=dev.base_url,
            color_scheme=scheme,
            viewport={"width": width, "height": height},
            storage_state=session,
            reduced_motion="reduce",
        )
        outside = await browser.new_context(
            base_url=dev.base_url, color_scheme=scheme, viewport={"width": width, "height": height}
        )
        for page in wanted:
            look = logins.viewing(dev, context, dev.account.id) if page.in_view else contextlib.nullcontext()
            async with look:
                tab = await (outside if page.as_visitor else context).new_page()
                await tab.goto(pages.path_of(page, dev))
                shown = async_api.expect(tab.locator("main"))
                await shown.to_contain_text(pages.text_of(page, dev), ignore_case=True, use_inner_text=True)
                await save_picture(tab, folder / f"{page.name}-{size}-{scheme}.png", is_whole=size == "phone")
                await tab.close()
        await context.close()
        await outside.close()


async def save_picture(tab: async_api.Page, file: Path, *, is_whole: bool) -> None:
    if is_whole:
        # A taller window rather than a longer picture: frames that nobody sees are not painted.
        width, height = await tab.evaluate("[innerWidth, document.documentElement.scrollHeight]")
        await tab.set_viewport_size({"width": width, "height": min(height, MAX_PIXELS)})
    await tab.evaluate(SETTLED)
    taken = await tab.screenshot(animations="disabled")
    _reduced(Image.open(io.BytesIO(taken)).convert("RGB")).save(file, optimize=True)


def _reduced(whole: Image.Image) -> Image.Image:
    """The picture in a third of the size. Grounds, bars and other frequent colours stay exact.

    The other colours of the palette cover the range of the picture, so that no edge of a letter changes visibly.
    """
    raw = whole.tobytes()
    pixels = list(zip(raw[::3], raw[1::3], raw[2::3], strict=True))
    counts = collections.Counter(pixels)
    rest = whole.quantize(256 - EXACT_COLOURS, method=Image.Quantize.MAXCOVERAGE).getpalette() or []
    palette = [color for color, _ in counts.most_common(EXACT_COLOURS)]
    palette += zip(rest[::3], rest[1::3], rest[2::3], strict=True)
    # Pillow's own search is coarse: it would turn white into a light grey.
    places = {color: _nearest(color, palette) for color in counts}
    reduced = Image.frombytes("P", whole.size, bytes(map(places.__getitem__, pixels)))
    reduced.putpalette([part for color in palette for part in color])
    return reduced


def _nearest(color: Color, palette: list[Color]) -> int:
    """The place of the palette's nearest colour. Written out, because it is asked for thousands of them."""
    red, green, blue = color
    distances = [(red - r) ** 2 + (green - g) ** 2 + (blue - b) ** 2 for r, g, b in palette]
    return distances.index(min(distances))


def index() -> str:
    """The page that shows all pictures."""
    rows = (
        f"\n## {page.name}\n\n"
        + " ".join(
            f"![{page.name}-{size}-{scheme}]({page.name}-{size}-{scheme}.png)" for size in SIZES for scheme in SCHEMES
        )
        + "\n"
        for page in pages.PAGES
    )
    return INDEX + "".join(rows)


async def main() -> None:
    """Start, take, stop."""
    options = argparse.ArgumentParser(prog="python -m tests.browser.screenshots", description=__doc__)
    options.add_argument("names", nargs="*", help="only these pages")
    options.add_argument("--folder", type=Path, default=FOLDER, help="where the pictures go (docs/screenshots)")
    given = options.parse_args()
    wanted = [page for page in pages.PAGES if not given.names or page.name in given.names]
    program = chromium.find()
    if program is None:
        raise SystemExit(f"no Chromium was found; {chromium.REMEDY}")
    async_api.expect.set_options(timeout=TIMEOUT_MILLISECONDS)
    given.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="postroad-") as name:
        async with dev_service.running(Path(name), messages=MESSAGES) as dev, chromium.running(program) as browser:
            await take(browser, dev, folder=given.folder, wanted=wanted)
    (given.folder / "README.md").write_text(index())


if __name__ == "__main__":
    asyncio.run(main())
