"""Pages and files in gzip: what may be compressed, for whom, and what a reader of lengths does not learn."""

import gzip
import re

import httpx
import pytest

from tests.dashboard.browser_client import Browser

TOKEN = re.compile(rb'(name="csrf_token" value=")\w+')


async def read(browser: Browser, path: str, encoding: str) -> tuple[httpx.Response, bytes]:
    """A response, and its body as it was sent."""
    async with browser.client.stream("GET", path, headers={"Accept-Encoding": encoding}) as response:
        return response, b"".join([part async for part in response.aiter_raw()])


async def files(browser: Browser) -> list[str]:
    """The URLs of the files that a page names."""
    return re.findall(r'(?:href|src)="(/assets/[^"]+)"', (await browser.get("/")).text)


async def test_a_compressed_page_is_the_plain_one(browser: Browser) -> None:
    for path in ("/", "/messages", "/profile", "/nothing-here"):
        plain, page = await read(browser, path, "identity")
        packed, body = await read(browser, path, "gzip, deflate, br")
        assert (plain.headers.get("content-encoding"), packed.headers["content-encoding"]) == (None, "gzip")
        assert plain.headers["vary"] == packed.headers["vary"] == "Accept-Encoding"
        assert int(packed.headers["content-length"]) == len(body) < len(page) / 1.5
        if path != "/nothing-here":  # that one names its request
            assert TOKEN.sub(rb"\1", gzip.decompress(body)) == TOKEN.sub(rb"\1", page)


async def test_pages_are_not_compressed_with_the_effort_that_a_hostile_text_makes_endless(browser: Browser) -> None:
    _, body = await read(browser, "/messages", "gzip")
    # RFC 1952 section 2.3.1.2: XFL is 2 for "maximum compression, slowest algorithm".
    assert body[8] == 0


async def test_a_page_without_a_login_is_compressed_too(nobody: Browser) -> None:
    response, body = await read(nobody, "/login", "gzip")
    assert response.headers["content-encoding"] == "gzip"
    assert b"<h1>Log in</h1>" in gzip.decompress(body)


async def test_a_compressed_file_is_the_plain_one_and_fonts_are_compressed_already(browser: Browser) -> None:
    kinds = set()
    for path in await files(browser):
        plain, content = await read(browser, path, "identity")
        packed, body = await read(browser, path, "gzip")
        kinds.add(plain.headers["content-type"])
        assert packed.headers["cache-control"] == "public, max-age=31536000, immutable"
        if path.endswith(".woff2"):
            assert "content-encoding" not in packed.headers
            assert "vary" not in packed.headers
            assert body == content
        else:
            assert packed.headers["content-encoding"] == "gzip"
            assert plain.headers["vary"] == packed.headers["vary"] == "Accept-Encoding"
            assert gzip.decompress(body) == content
            assert len(body) < len(content)
    assert {kind.partition(";")[0] for kind in kinds} == {"text/css", "text/javascript", "image/svg+xml", "font/woff2"}


@pytest.mark.parametrize(
    "encoding, is_packed",
    [
        ("gzip", True),
        ("GZIP", True),
        ("br, gzip;q=0.5", True),
        ("br ; q=1, gzip ; q=1.0", True),
        ("gzip;q=0.001", True),
        ("gzip;q=0", False),
        ("gzip; q=0.000, br", False),
        ("x-gzip", False),
        ("br", False),
        ("identity", False),
        ("", False),
    ],
)
async def test_who_does_not_want_gzip_does_not_get_it(browser: Browser, encoding: str, *, is_packed: bool) -> None:
    response, _ = await read(browser, "/messages", encoding)
    assert ("content-encoding" in response.headers) is is_packed


async def test_the_length_of_a_page_says_little_and_its_form_has_another_token_each_time(browser: Browser) -> None:
    bodies = [(await read(browser, "/suppressions", "gzip"))[1] for _ in range(12)]
    assert len({len(body) for body in bodies}) > 4
    tokens = {re.findall(rb'name="csrf_token" value="(\w+)"', gzip.decompress(body))[0] for body in bodies}
    assert len(tokens) == 12
    for number, token in enumerate(tokens):
        form = {"csrf_token": token.decode(), "email": f"{number}@example.net"}
        assert (await browser.client.post("/suppressions", data=form)).status_code == 303


async def test_downloads_and_live_updates_are_not_compressed(browser: Browser) -> None:
    response, _ = await read(browser, "/suppressions/export", "gzip")
    assert response.status_code == 200
    assert "content-encoding" not in response.headers
