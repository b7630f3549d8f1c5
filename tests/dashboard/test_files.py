"""Static files: fonts and what else others wrote, and the colours that badges and charts share."""

import hashlib
import re
import tomllib
from importlib import resources

import pytest

from postroad.dashboard.framework import static_files

ASSETS = resources.files("postroad.dashboard").joinpath("assets")
OUTCOMES = ("delivered", "bounced", "failed", "deferred", "expired", "canceled", "scheduled", "queued", "test")
Colors = dict[str, str]


def test_what_others_wrote_is_as_the_manifest_says() -> None:
    vendor = ASSETS.joinpath("vendor")
    manifest = tomllib.loads(vendor.joinpath("manifest.toml").read_text())
    assert {entry.name for entry in vendor.iterdir()} == {"manifest.toml", *manifest}
    for name, package in manifest.items():
        held = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in vendor.joinpath(name).iterdir()}
        assert held == package["sha256"]
        assert "LICENSE" in held
        assert {"package", "version", "licence"} <= package.keys()


def test_stylesheets_name_fonts_by_the_urls_that_serve_them() -> None:
    loaded = static_files.load()
    style = loaded.contents[loaded.addresses["dashboard.css"]][0].decode()
    urls = re.findall(r'url\("([^"]+)"\)', style)
    assert len(urls) == 4
    for url in urls:
        content, kind = loaded.contents[url]
        assert kind == "font/woff2"
        assert content.startswith(b"wOF2")
    assert style.count("font-display: swap") == 4


def test_browsers_get_no_comments_for_readers_of_the_code() -> None:
    loaded = static_files.load()
    for name, said in (("dashboard.js", "window.postroad = { prepare };"), ("dashboard.css", ".toast {")):
        text = loaded.contents[loaded.addresses[name]][0].decode()
        assert re.search(r"^ */\*", text, re.MULTILINE) is None
        assert said in text


def _luminance(color: str) -> float:
    """WCAG 2.2, relative luminance."""
    parts = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _contrast(one: str, other: str) -> float:
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


def _themes() -> tuple[Colors, Colors, Colors]:
    """The colours of light, of dark by the system, and of dark by choice."""
    blocks = re.findall(r":root[^{]*\{\s*(color-scheme[^}]*)\}", ASSETS.joinpath("colors.css").read_text())
    light, by_system, by_choice = (dict(re.findall(r"--([a-z-]+): (#\w{6});", block)) for block in blocks)
    return light, by_system, by_choice


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_outcomes_have_colours_that_can_be_read_and_told_apart(theme: int) -> None:
    colors = _themes()[theme]
    for name in OUTCOMES:
        text, soft, fill = colors[name], colors[f"{name}-soft"], colors[f"{name}-fill"]
        assert min(_contrast(text, ground) for ground in (soft, colors["surface"], colors["ground"])) >= 4.5, name
        assert _contrast(fill, colors["surface"]) >= 3, name
    for suffix in ("", "-soft", "-fill"):
        assert len({colors[f"{name}{suffix}"] for name in OUTCOMES}) == len(OUTCOMES)


def test_dark_by_choice_is_dark_by_the_system() -> None:
    _, by_system, by_choice = _themes()
    assert by_system == by_choice
