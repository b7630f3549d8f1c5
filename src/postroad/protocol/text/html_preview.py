"""The HTML of a message, rewritten so that a browser can show it and do nothing else.

It is one of three guards. The frame that shows it is sandboxed without scripts, forms, popups and its own origin, and
the response has a policy that loads nothing (`services/messages/previews.py`). Those two stop scripts, loads, forms and
refreshes by `<meta>`, but neither stops navigation of the frame: a click on a link, an area or an SVG link leads to a
foreign page, even where an animation sets the address later; and `<link rel=preconnect>` bypasses both. So links lose
their address, which becomes their title; elements and attributes that navigate, load or run are removed; images inside
the message replace their `cid:` (RFC 2392). Style sheets are left to the policy, but for the preferred color scheme
that they ask about, which is the one of the preview.

It does not depend on parsing HTML as a browser does. Every `<` in the output was written here, before a name and
attributes that were checked; any other is text. All steps are linear in the size, and nothing fails.
"""

import html
import re
import urllib.parse
from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from postroad.protocol.text import html_usage

# Mail is written for white paper, and a link that leads nowhere still looks like one. It is first, so mail may differ;
# only the scheme is ours, because "light dark" would follow the settings of the reader.
_LINK_STYLE: Final = "[data-link]{color:LinkText;text-decoration:underline;cursor:help}</style>"
STYLE: Final = f"<style>html{{background:#fff;color:#000;color-scheme:light!important}}{_LINK_STYLE}"
DARK_STYLE: Final = f"<style>html{{background:#121212;color:#e8e6e3;color-scheme:dark!important}}{_LINK_STYLE}"
# What a reader with the wanted scheme would see, whatever scheme this browser has: the conditions become constants.
_PREFERRED: Final = re.compile(r"prefers-color-scheme\s*+:\s*+(dark|light)(?![\w-])", re.IGNORECASE)
_TRUE, _FALSE = "min-width:0", "max-width:0"
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

_NAME: Final = re.compile(r"[a-z][a-z0-9:_-]*+", re.IGNORECASE)
_DOCTYPE: Final = re.compile(r"\s*+<!doctype", re.IGNORECASE)
_STYLE_URL: Final = re.compile(
    rf"""url\(\s*+(?:["']|&quot;|&\#39;)?cid:([^"'()\s&]{{1,{_CID_CHARACTERS}}}+)(?:["']|&quot;|&\#39;)?\s*+\)""",
    re.IGNORECASE,
)
_REMOTE: Final = re.compile(r"(?:https?:)?//", re.IGNORECASE)
# As long as a URL that may be requested.
_URL_CHARACTERS: Final = 2048
_STYLE_REMOTE: Final = re.compile(
    rf"""url\(\s*+(?:["']|&quot;|&\#39;)?((?:https?:)?//(?:(?!&quot;|&\#39;)[^"'()\s<>\\]){{1,{_URL_CHARACTERS}}}+)"""
    r"""(?:["']|&quot;|&\#39;)?\s*+\)""",
    re.IGNORECASE,
)
_STYLE_COMMENT: Final = re.compile(r"<!--|-->")

Image = Callable[[str], str | None]


class _Options(msgspec.Struct, frozen=True):
    image: Image
    remote_image: Image
    is_dark: bool


def _no_image(reference: str) -> None:
    del reference


def render(source: str, image: Image, *, remote_image: Image = _no_image, is_dark: bool = False) -> str:
    """The document for the frame.

    `image` gives the data URI of the part with a content id, if it may be shown; `remote_image` that of an image with a
    URL, if it was fetched.
    """
    doctype = "<!doctype html>" if _DOCTYPE.match(source) else ""
    written = _written(source, _Options(image, remote_image, is_dark))
    return "".join([doctype, DARK_STYLE if is_dark else STYLE, *written])


def remote_images(source: str) -> list[str]:
    """The URLs that `render` asks for, once each, in order."""
    found: dict[str, str | None] = {}
    render(source, _no_image, remote_image=lambda url: found.setdefault(url, None))
    return list(found)


def _written(source: str, options: _Options) -> Iterator[str]:
    at = 0
    while at < len(source):
        token = html_usage.TOKEN.match(source, at)
        if token is None:  # every character begins a token
            return
        at = token.end()
        name = (token["start"] or token["end"] or "").lower()
        if token["text"]:
            yield token["text"]
        elif token["lone"]:
            yield "&lt;"
        elif token["start"] and (name == "style" or name in EMPTIED_ELEMENTS):
            content, at = html_usage.raw_text(source, at, name)
            if name == "style":
                media = "".join(
                    attribute
                    for attribute in _attributes(token["attributes"], options)
                    if attribute.startswith(" media=")
                )
                yield f"<style{media}>{_style(content, options)}</style>"
        elif _NAME.fullmatch(name) is None or name in _LEFT_OUT:
            continue
        elif token["start"] and token["whole"]:
            yield f"<{name}{''.join(_attributes(token['attributes'], options))}>"
        elif token["end"] and name != "style":
            yield f"</{name}>"


def _style(content: str, options: _Options) -> str:
    """A style sheet that cannot start an element, however a browser parses it."""
    text = _for_scheme(_STYLE_COMMENT.sub("", content), options)
    return _with_images(text, options).replace("<", r"\3c ")


def _for_scheme(conditions: str, options: _Options) -> str:
    """Media conditions whose preferred color scheme is the one of the preview."""
    wanted = "dark" if options.is_dark else "light"
    return _PREFERRED.sub(lambda found: _TRUE if found[1].lower() == wanted else _FALSE, conditions)


def _attributes(text: str, options: _Options) -> Iterator[str]:
    """The attributes that are left. Where a link was, its address is the title, and no other title deceives."""
    link = None
    kept: list[tuple[str, str]] = []
    for name, value in html_usage.parse_attributes(text):
        if name in LINKING_ATTRIBUTES and not value.startswith("#"):
            link = link or value
        elif _is_kept(name):
            kept.append((name, _inside(name, value, options)))
    for name, value in kept:
        if (value or name not in LOADING_ATTRIBUTES) and (link is None or name != "title"):
            yield f' {name}="{_quoted(value)}"'
    if link is not None:
        yield f' data-link title="{_quoted(link)}"'


def _is_kept(name: str) -> bool:
    if name.startswith("on") or name == "data-link" or name in DROPPED_ATTRIBUTES:
        return False
    return _NAME.fullmatch(name) is not None


def _inside(name: str, value: str, options: _Options) -> str:
    """The value with images of the message; other references are removed."""
    if name in LOADING_ATTRIBUTES:
        return _loaded(value, options)
    if name == "media":
        return _for_scheme(value, options)
    return _with_images(value, options) if name == "style" else value


def _loaded(value: str, options: _Options) -> str:
    """The address of something inside the message; nothing for what would have to be fetched."""
    value = value.strip()
    scheme, _, rest = value.partition(":")
    if scheme.lower() == "cid" and len(rest) <= _CID_CHARACTERS:
        return options.image(urllib.parse.unquote(html.unescape(rest))) or ""
    if _REMOTE.match(value):
        return _remote(value, options)
    return value if value.lower().startswith("data:image/") else ""


def _with_images(text: str, options: _Options) -> str:
    """The style with the images of its `url(cid:…)` and those fetched; what has none stays, and loads nothing."""
    text = _STYLE_REMOTE.sub(lambda url: f"url({found})" if (found := _remote(url[1], options)) else url[0], text)
    return _STYLE_URL.sub(lambda url: f"url({options.image(urllib.parse.unquote(url[1])) or ''})", text)


def _remote(reference: str, options: _Options) -> str:
    """The data URI of a remote image; without a scheme, HTTPS is meant."""
    url = html.unescape(reference)
    return options.remote_image(f"https:{url}" if url.startswith("//") else url) or ""


def _quoted(value: str) -> str:
    """For double quotes. References to characters stay as they are, for the browser to read."""
    return value.replace('"', "&quot;").replace("<", "&lt;").replace(">", "&gt;")
