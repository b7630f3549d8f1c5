"""`/llms.txt` lists every page of the documentation, and each is served as it is in the repository."""

from pathlib import Path

import pytest

from postroad.api import documentation, markdown_pages
from tests.api import app_server

DOCS = Path(__file__).parent.parent.parent / "docs"
NAMES = sorted(str(path.relative_to(DOCS)) for pattern in ("*.md", "decisions/*.md") for path in DOCS.glob(pattern))
ROUTES = (*documentation.routes((), version="1"), *markdown_pages.routes())


async def test_every_page_is_listed_with_its_first_sentence_and_served() -> None:
    async with app_server.running(ROUTES) as opened:
        listed = await opened.client.get("/llms.txt")
        assert listed.headers["content-type"] == "text/plain; charset=utf-8"
        assert listed.text.startswith("# Postroad\n\n> A self-hosted transactional email service")
        assert "https://github.com/postroad/postroad/blob/main/clients/README.md" in listed.text
        assert NAMES
        for name in NAMES:
            (line,) = [line for line in listed.text.splitlines() if f"](/docs/{name}): " in line]
            assert line.rpartition("): ")[2], name
            page = await opened.client.get(f"/docs/{name}")
            assert page.content == (DOCS / name).read_bytes()
            assert page.headers["content-type"] == "text/markdown; charset=utf-8"
            assert page.headers["cache-control"] == "public, max-age=3600"
        assert listed.text.count("](/docs/") == len(NAMES)


async def test_the_reference_stays_where_it_is_and_nothing_else_is_reached() -> None:
    async with app_server.running(ROUTES) as opened:
        assert (await opened.client.get("/docs")).headers["content-type"] == "text/html; charset=utf-8"
        assert (await opened.client.get("/docs/start.js")).status_code == 200
        for path in ("nothing.md", "..%2fpyproject.toml", "%2e%2e", "how-it-works.svg", "decisions", "decisions/x.md"):
            missing = await opened.client.get(f"/docs/{path}")
            assert (missing.status_code, missing.json()["code"]) == (404, "not_found")


async def test_the_index_is_written_once_however_often_strangers_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    written = iter(("first", "second"))
    monkeypatch.setattr(markdown_pages, "index", lambda _: next(written))
    async with app_server.running(markdown_pages.routes()) as opened:
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
    assert markdown_pages.title(page) == "A"
    assert markdown_pages.first_sentence(page) == sentence
