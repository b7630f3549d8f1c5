"""`/llms.txt` lists every page of the documentation, and each is served with links that work."""

import re
from pathlib import Path
from urllib.parse import urljoin

import pytest

from postroad.api import documentation
from tests.api import app_server

DOCS = Path(__file__).parent.parent.parent / "docs"
NAMES = sorted(str(path.relative_to(DOCS)) for pattern in ("*.md", "decisions/*.md") for path in DOCS.glob(pattern))
ROUTES = (*documentation.routes((), version="1"), *documentation.markdown_routes())


async def test_every_page_is_listed_with_its_first_sentence_and_served() -> None:
    async with app_server.running(ROUTES) as opened:
        listed = await opened.client.get("/llms.txt")
        assert listed.headers["content-type"] == "text/plain; charset=utf-8"
        assert listed.text.startswith("# Postroad\n\n> A self-hosted transactional email service")
        assert NAMES
        for name in NAMES:
            (line,) = [line for line in listed.text.splitlines() if f"](/docs/{name}): " in line]
            assert line.rpartition("): ")[2], name
            page = await opened.client.get(f"/docs/{name}")
            assert page.text.partition("\n")[0] == (DOCS / name).read_text().partition("\n")[0]
            assert page.headers["content-type"] == "text/markdown; charset=utf-8"
            assert page.headers["cache-control"] == "public, max-age=3600"
        assert listed.text.count("](/docs/") == len(NAMES)


def test_every_link_of_a_page_is_to_a_served_page_or_to_a_file_of_the_repository() -> None:
    served = {f"/docs/{name}" for name in NAMES} | {"/docs", "/openapi.json", "/llms.txt", "/dashboard"}
    outside = 0
    for name in NAMES:
        page = documentation.with_links_that_work((DOCS / name).read_text(), name, NAMES)
        for target in re.findall(r"\]\(([^)\s]+)\)|(?:src|srcset)=\"([^\"]+)\"", page):
            address = urljoin(f"/docs/{name}", "".join(target)).partition("#")[0]
            path = address.removeprefix("https://github.com/postroad/postroad/blob/main/")
            if path != address:
                outside += 1
                assert (DOCS.parent / path.removesuffix("?raw=true")).is_file(), (name, path)
            elif not address.startswith(("http:", "https:")):
                assert address in served, (name, address)
    assert outside > 30


@pytest.mark.parametrize(
    "written, served",
    [
        ("[a](api.md#x)", "[a](api.md#x)"),
        ("[a](../api.md)", "[a](../api.md)"),
        ("[a](#x) [b](https://example.org/x.md) [c](/openapi.json)",) * 2,
        ("[a](../../a/b.md#c)", "[a](https://github.com/postroad/postroad/blob/main/a/b.md#c)"),
        ("![a](x.svg)", "![a](https://github.com/postroad/postroad/blob/main/docs/decisions/x.svg?raw=true)"),
        (
            '<img src="x.png">',
            '<img src="https://github.com/postroad/postroad/blob/main/docs/decisions/x.png?raw=true">',
        ),
    ],
)
def test_a_link_to_what_is_not_served_leads_to_the_repository(written: str, served: str) -> None:
    pages = {"api.md", "decisions/api.md", "decisions/0001.md"}
    assert documentation.with_links_that_work(written, "decisions/0001.md", pages) == served


async def test_the_reference_stays_where_it_is_and_nothing_else_is_reached() -> None:
    async with app_server.running(ROUTES) as opened:
        assert (await opened.client.get("/docs")).headers["content-type"] == "text/html; charset=utf-8"
        assert (await opened.client.get("/docs/start.js")).status_code == 200
        for path in ("nothing.md", "..%2fpyproject.toml", "%2e%2e", "how-it-works.svg", "decisions", "decisions/x.md"):
            missing = await opened.client.get(f"/docs/{path}")
            assert (missing.status_code, missing.json()["code"]) == (404, "not_found")


async def test_the_index_is_written_once_however_often_strangers_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    written = iter(("first", "second"))
    monkeypatch.setattr(documentation, "markdown_index", lambda _: next(written))
    async with app_server.running(documentation.markdown_routes()) as opened:
        texts = {(await opened.client.get("/llms.txt")).text for _ in range(3)}
    assert texts == {"first"}


@pytest.mark.parametrize(
    "page, sentence",
    [
        ("# A\n\nOne [two](x.md) three.\nFour.\n", "One two three."),
        ("# A\n\n- Status: x\n\n## B\n\nVersion 1.0.0. It\nis `x`.", "Version 1.0.0."),
        ("# A\n\nWithout an end\n", "Without an end"),
        ("# A\n", ""),
    ],
)
def test_the_first_sentence_is_text_of_one_line(page: str, sentence: str) -> None:
    assert documentation.title(page) == "A"
    assert documentation.first_sentence(page) == sentence
