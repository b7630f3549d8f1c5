"""`make docs` builds a site that can be searched, shows its version, and loads nothing from other hosts.

Links are held to by the build itself, which is strict. The tests need what `make docs` installs.
"""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest
import yaml

import postroad
from tests.browser import chromium, skip_report

ROOT = Path(__file__).parents[2]
SITE = ROOT / "build" / "docs" / "site"
# A bound for a busy machine; a build takes ten seconds.
TIMEOUT_SECONDS = 1000
# What a browser fetches by itself; the target of a link is fetched when somebody follows it.
LOADED = {"img": "src", "script": "src", "source": "srcset", "iframe": "src", "video": "src", "audio": "src"}
LOADED_LINKS = {"stylesheet", "icon", "preconnect", "dns-prefetch", "preload", "modulepreload", "manifest"}


class Page(HTMLParser):
    """The addresses that a page loads, and its pictures."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect what the element loads."""
        given = {name: value or "" for name, value in attrs}
        if tag == "link" and LOADED_LINKS & set(given.get("rel", "").split()):
            self.loaded.append(given["href"])
        elif given.get(LOADED.get(tag, "")):
            self.loaded.append(given[LOADED[tag]])


@pytest.fixture(scope="module")
def pages() -> dict[Path, Page]:
    if not (ROOT / ".venv-docs" / ".installed").exists() or shutil.which("make") is None:
        pytest.skip("what builds the documentation is not installed: make docs")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    built = subprocess.run(
        ["make", "docs"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    return {path: Page(path.read_text()) for path in SITE.rglob("*.html")}


def named_in(nav: object) -> Iterator[str]:
    if isinstance(nav, str):
        yield nav
    elif isinstance(nav, dict):
        for below in nav.values():
            yield from named_in(below)
    elif isinstance(nav, list):
        for below in nav:
            yield from named_in(below)


def test_a_page_loads_nothing_from_other_hosts(pages: dict[Path, Page]) -> None:
    assert len(pages) > 40
    foreign = re.compile(r"(?:[a-z]+:)?//")
    found = {(path.name, where) for path, page in pages.items() for where in page.loaded if foreign.match(where)}
    assert found == set()
    styles = "".join(path.read_text() for path in SITE.rglob("*.css"))
    assert re.findall(r"(?:url\(|@import )['\"]?(?:https?:)?//[^)]*", styles) == []


def test_everything_that_a_page_loads_is_there(pages: dict[Path, Page]) -> None:
    files = {
        (path, where.partition("?")[0].partition("#")[0])
        for path, page in pages.items()
        if path.name != "404.html"  # its addresses start at the root of wherever it is served
        for where in page.loaded
        if not where.startswith("data:")
    }
    assert sum(where.endswith(".png") for _, where in files) > 50
    assert [f"{path.name}: {where}" for path, where in files if not (path.parent / where).exists()] == []


def test_the_version_is_shown_and_pages_can_be_found(pages: dict[Path, Page]) -> None:
    for name in ("index.html", "docs/production.html", "docs/decisions/0001-storage.html"):
        assert f"Postroad {postroad.__version__}" in (SITE / name).read_text()
    index = json.loads((SITE / "search.json").read_text())
    assert "Is port 25 blocked?" in json.dumps(index)


def test_four_doors_are_at_the_top_of_the_navigation() -> None:
    text = re.sub(r"!+(?:ENV|python)\S*", "", (ROOT / "mkdocs.yml").read_text())
    doors = [next(iter(part)) for part in yaml.safe_load(text)["nav"]]
    assert doors == ["Postroad", "Start", "Send", "Go live", "When something is wrong", "Develop"]


def test_no_page_has_more_than_2500_words() -> None:
    pages = [*(ROOT / "docs").glob("*.md"), *(ROOT / "docs").glob("compare/*.md")]
    assert {path.name for path in pages if len(path.read_text().split()) > 2500} == set()


async def test_a_reader_searches_in_files_without_a_server(pages: dict[Path, Page]) -> None:
    program = chromium.find()
    if program is None:
        skip_report.skip("the search of the documentation", because="no Chromium was found", remedy=chromium.REMEDY)
    async with chromium.running(program) as browser:
        reader = await browser.new_page()
        reader.set_default_timeout(TIMEOUT_SECONDS * 1000)
        await reader.goto((SITE / "index.html").as_uri())
        await reader.get_by_role("button", name="Search").first.click()
        await reader.keyboard.type("blocked port 25")
        await reader.locator("a", has_text="Is port 25 blocked?").wait_for()
        await reader.keyboard.press("Enter")
        await reader.wait_for_url("**/docs/production.html*#is-port-25-blocked")


def test_every_page_of_the_documentation_has_a_place_in_the_navigation() -> None:
    text = re.sub(r"!+(?:ENV|python)\S*", "", (ROOT / "mkdocs.yml").read_text())
    listed = set(named_in(yaml.safe_load(text)["nav"]))
    assert [name for name in listed if not (ROOT / name).exists()] == []
    patterns = ("*.md", "docs/*.md", "docs/compare/*.md", "examples/**/README.md", "extensions/*/README.md")
    ours = {str(path.relative_to(ROOT)) for pattern in patterns for path in ROOT.glob(pattern)}
    ours = {name for name in ours if "node_modules" not in name}
    assert ours - listed == set()
