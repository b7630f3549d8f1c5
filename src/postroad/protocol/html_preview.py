"""The HTML of a message, rewritten so that a browser can show it and do nothing else.

It is one of three guards. The frame that shows it is sandboxed without scripts, forms, popups and its own origin, and
the response has a policy that loads nothing (`services/messages/previews.py`). Those two stop scripts, loads, forms and
refreshes by `<meta>`, but neither stops navigation of the frame: a click on a link, an area or an SVG link leads to a
foreign page, even where an animation sets the address later; and `<link rel=preconnect>` bypasses both. So links lose
their address, which becomes their title; elements and attributes that navigate, load or run are removed; images inside
the message replace their `cid:` (RFC 2392). Style sheets are left to the policy.

It does not depend on parsing HTML as a browser does. Every `<` in the output was written here, before a name and
attributes that were checked; any other is text. All steps are linear in the size, and nothing fails.
"""

import html
import re
import urllib.parse
from collections.abc import Callable, Iterator
from typing import Final

# Mail is written for white paper, and a link that leads nowhere still looks like one. It is first, so mail may differ.
STYLE: Final = (
    "<style>html{background:#fff;color:#000;color-scheme:light}"
    "[data-link]{color:LinkText;text-decoration:underline;cursor:help}</style>"
)
# They begin or end something that loads, runs, leads elsewhere, or swallows what follows. Their content stays.
DROPPED_ELEMENTS: Final = frozenset(
    "animate animatecolor animatemotion animatetransform applet base button embed fencedframe form frame frameset "
    "link meta object param plaintext portal set".split()
)
# The same, with everything up to their end.
EMPTIED_ELEMENTS: Final = frozenset("iframe noembed noframes script title xmp".split())
DROPPED_ATTRIBUTES: Final = frozenset(
    "accesskey action archive attributionsrc autofocus autoplay browsingtopics classid code codebase contenteditable "
    "formaction http-equiv imagesrcset is manifest nonce ping popover profile rel srcdoc srcset tabindex target usemap "
    "xml:base".split()
)
LINKING_ATTRIBUTES: Final = frozenset({"href", "xlink:href"})
LOADING_ATTRIBUTES: Final = frozenset("background cite data dynsrc icon longdesc lowsrc poster src".split())
_LEFT_OUT: Final = DROPPED_ELEMENTS | EMPTIED_ELEMENTS
# As long as a line of a header: a longer one names no part.
_CID_CHARACTERS: Final = 998

_TOKEN: Final = re.compile(
    r"""
      (?P<text>[^<]++)
    | <!--(?:-?>|.*?(?:--!?>|\Z))
    | </(?P<end>[a-z][^\s/>]*+)[^>]*+>?
    | <(?P<start>[a-z][^\s/>]*+)(?P<attributes>(?:[^>=]++|=\s*+(?:"[^"]*+"?|'[^']*+'?)|=)*+)(?P<whole>>?)
    | <[!?/][^>]*+>?
    | (?P<lone><)
    """,
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
_ATTRIBUTE: Final = re.compile(
    r"""([^\s=/>]++)(?:\s*+=\s*+(?:"(?P<double>[^"]*+)"?|'(?P<single>[^']*+)'?|(?P<bare>[^\s>]*+)))?+""", re.DOTALL
)
_NAME: Final = re.compile(r"[a-z][a-z0-9:_-]*+", re.IGNORECASE)
_DOCTYPE: Final = re.compile(r"\s*+<!doctype", re.IGNORECASE)
_STYLE_URL: Final = re.compile(
    rf"""url\(\s*+(?:["']|&quot;|&\#39;)?cid:([^"'()\s&]{{1,{_CID_CHARACTERS}}}+)(?:["']|&quot;|&\#39;)?\s*+\)""",
    re.IGNORECASE,
)
_STYLE_COMMENT: Final = re.compile(r"<!--|-->")

Image = Callable[[str], str | None]


def render(source: str, image: Image) -> str:
    """The document for the frame. `image` gives the data URI of the part with a content id, if it may be shown."""
    doctype = "<!doctype html>" if _DOCTYPE.match(source) else ""
    return "".join([doctype, STYLE, *_written(source, image)])


def _written(source: str, image: Image) -> Iterator[str]:
    at = 0
    while at < len(source):
        token = _TOKEN.match(source, at)
        if token is None:  # every character begins a token
            return
        at = token.end()
        name = (token["start"] or token["end"] or "").lower()
        if token["text"]:
            yield token["text"]
        elif token["lone"]:
            yield "&lt;"
        elif token["start"] and (name == "style" or name in EMPTIED_ELEMENTS):
            content, at = _raw_text(source, at, name)
            if name == "style":
                yield f"<style>{_style(content, image)}</style>"
        elif _NAME.fullmatch(name) is None or name in _LEFT_OUT:
            continue
        elif token["start"] and token["whole"]:
            yield f"<{name}{''.join(_attributes(token['attributes'], image))}>"
        elif token["end"] and name != "style":
            yield f"</{name}>"


def _raw_text(source: str, at: int, name: str) -> tuple[str, int]:
    """The content of a raw text element, and the position after its end tag."""
    end = re.compile(rf"</{name}(?=[\s/>])[^>]*+>?", re.IGNORECASE).search(source, at)
    return (source[at : end.start()], end.end()) if end else (source[at:], len(source))


def _style(content: str, image: Image) -> str:
    """A style sheet that cannot start an element, however a browser parses it."""
    return _with_images(_STYLE_COMMENT.sub("", content), image).replace("<", r"\3c ")


def _attributes(text: str, image: Image) -> Iterator[str]:
    """The attributes that are left. Where a link was, its address is the title, and no other title deceives."""
    link = None
    kept: list[tuple[str, str]] = []
    for found in _ATTRIBUTE.finditer(text):
        name, value = found[1].lower(), found["double"] or found["single"] or found["bare"] or ""
        if name in LINKING_ATTRIBUTES and not value.startswith("#"):
            link = link or value
        elif _is_kept(name):
            kept.append((name, _inside(name, value, image)))
    for name, value in kept:
        if (value or name not in LOADING_ATTRIBUTES) and (link is None or name != "title"):
            yield f' {name}="{_quoted(value)}"'
    if link is not None:
        yield f' data-link title="{_quoted(link)}"'


def _is_kept(name: str) -> bool:
    if name.startswith("on") or name == "data-link" or name in DROPPED_ATTRIBUTES:
        return False
    return _NAME.fullmatch(name) is not None


def _inside(name: str, value: str, image: Image) -> str:
    """The value with images of the message; other references are removed."""
    if name in LOADING_ATTRIBUTES:
        return _loaded(value, image)
    return _with_images(value, image) if name == "style" else value


def _loaded(value: str, image: Image) -> str:
    """The address of something inside the message; nothing for what would have to be fetched."""
    value = value.strip()
    scheme, _, rest = value.partition(":")
    if scheme.lower() == "cid" and len(rest) <= _CID_CHARACTERS:
        return image(urllib.parse.unquote(html.unescape(rest))) or ""
    return value if value.lower().startswith("data:image/") else ""


def _with_images(text: str, image: Image) -> str:
    """The style with the images of its `url(cid:…)`; what has none stays, and loads nothing."""
    return _STYLE_URL.sub(lambda url: f"url({image(urllib.parse.unquote(url[1])) or ''})", text)


def _quoted(value: str) -> str:
    """For double quotes. References to characters stay as they are, for the browser to read."""
    return value.replace('"', "&quot;").replace("<", "&lt;").replace(">", "&gt;")
