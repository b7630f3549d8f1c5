"""About how tall the HTML of a message is, for a frame that nobody can measure: it has no right to tell.

Lines of text, the margins of blocks, images, and the heights and paddings that mail writes on its elements. What is
wrong by a few lines has a little space below, or scrolls.
"""

import re
from typing import Final

from postroad.protocol.text import html_usage

MAX_HEIGHT: Final = 600
_MIN_HEIGHT: Final = 60
# Elements and texts that are looked at: mail that fills a frame has some hundred, and hostile mail many without height.
MAX_TOKENS: Final = 5_000
# As browsers show 16 px: line, margin of a paragraph, and the width of a letter on average.
_LINE: Final = 19
_MARGIN: Final = 16
_LETTER: Final = 7
_BREAKING: Final = frozenset(
    "address article blockquote body br center dd div dl dt footer h1 h2 h3 h4 h5 h6 header hr li main ol p pre "
    "section table tr ul".split()
)
_SPACED: Final = frozenset("blockquote dl h1 h2 h3 h4 h5 h6 hr ol p pre ul".split())
_LARGE: Final = {"h1": 2.0, "h2": 1.5, "h3": 1.2}
# `padding: 24px` is above and below; `height:` is that of an image, or of a row that only keeps a distance.
_PADDING: Final = re.compile(r"padding(-top|-bottom)?\s{0,5}:\s{0,5}(\d{1,3})px", re.IGNORECASE)
_HEIGHT: Final = re.compile(r"(?<![-\w])height\s{0,5}:\s{0,5}(\d{1,3})px", re.IGNORECASE)
_HIDDEN: Final = re.compile(r"display\s{0,5}:\s{0,5}none|max-height\s{0,5}:\s{0,5}0", re.IGNORECASE)
_DIGITS: Final = re.compile(r"\d{1,3}")
_HEAD: Final = frozenset({"style", "script", "title"})


def estimate(source: str, *, width: int) -> int:
    """The height in pixels, up to `MAX_HEIGHT`."""
    height, letters, scale, at = 1.5 * _MARGIN, 0.0, 1.0, 0
    for _ in range(MAX_TOKENS):
        token = html_usage.TOKEN.match(source, at) if height < MAX_HEIGHT else None
        if token is None:  # at the end: every character begins a token
            break
        at = token.end()
        name = (token["start"] or token["end"] or "").lower()
        if token["text"]:
            letters += len(" ".join(token["text"].split())) * scale
        if name in _BREAKING:
            height += -(-letters * _LETTER // width) * _LINE * scale
            letters = 0
            height += _MARGIN / 2 if name in _SPACED else 0
            scale = _LARGE.get(name, 1.0) if token["start"] else 1.0
        if token["start"]:
            if name in _HEAD:
                _, at = html_usage.raw_text(source, at, name)
            height += _written_height(name, dict(html_usage.parse_attributes(token["attributes"])))
    return int(min(MAX_HEIGHT, max(_MIN_HEIGHT, height + -(-letters * _LETTER // width) * _LINE)))


def _written_height(name: str, attributes: dict[str, str]) -> int:
    """What an element adds by its attributes."""
    style = attributes.get("style", "")
    if _HIDDEN.search(style):
        return 0
    padding = sum(int(found[2]) * (1 if found[1] else 2) for found in _PADDING.finditer(style))
    if name != "img":
        return padding
    found = _HEIGHT.search(style)
    digits = found[1] if found else attributes.get("height", "")
    return padding + (int(digits) if _DIGITS.fullmatch(digits) else 0)
