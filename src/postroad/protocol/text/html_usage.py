"""What an HTML document uses: elements, attributes and CSS by name with their lines, links, and images without text.

Keys say what is used: `tag:video`, `attribute:srcset`, `type:checkbox`, `meta:color-scheme`, `link:mailto`,
`image:webp`, `property:gap`, `keyword:initial`, `keyword:display:flex`, `function:calc`, `unit:vw`, `at:media`,
`media:hover`, `pseudo:before`, `selector:>`. Only known keys are noted, each with its first lines, so that the result
is small whatever the document; all steps are linear in its size.
"""

import bisect
import html
import re
from collections.abc import Container, Iterator
from typing import Final

import msgspec

# The tokens of an HTML document, in linear time: tags, text, comments, and the content of raw text elements.
#
# It does not depend on parsing as a browser does, and accepts any text; whoever uses it decides what a token means.

TOKEN: Final = re.compile(
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


def parse_attributes(text: str) -> Iterator[tuple[str, str]]:
    """The attributes of a tag: names in lower case, and values with their references to characters."""
    for found in _ATTRIBUTE.finditer(text):
        yield found[1].lower(), found["double"] or found["single"] or found["bare"] or ""


def raw_text(source: str, at: int, name: str) -> tuple[str, int]:
    """The content of a raw text element, and the position after its end tag."""
    end = re.compile(rf"</{name}(?=[\s/>])[^>]*+>?", re.IGNORECASE).search(source, at)
    return (source[at : end.start()], end.end()) if end else (source[at:], len(source))


# More is of no use to whoever corrects it.
MAX_LINES: Final = 5
MAX_LINKS: Final = 200
LINK_TEXT_CHARACTERS: Final = 200
URL_CHARACTERS: Final = 2048
_RAW_TEXT_ELEMENTS: Final = frozenset({"script", "style", "title", "xmp", "iframe", "noembed", "noframes"})

_SPACE: Final = re.compile(r"\s+")
_NEW_LINE: Final = re.compile(r"\n")
# Comments, strings and URLs, in which no character means anything.
_CSS_TEXT: Final = re.compile(
    r"""/\*.*?(?:\*/|\Z)|"(?:[^"\\]|\\.)*+"?|'(?:[^'\\]|\\.)*+'?|url\([^)]*+\)?""", re.DOTALL | re.IGNORECASE
)
_NOT_NEW_LINE: Final = re.compile(r"[^\n]")
_CSS_STEP: Final = re.compile(r"([^{};]++)([{};]?)|[{};]")
_AT_RULE: Final = re.compile(r"@([a-z-]+)", re.IGNORECASE)
_MEDIA_FEATURE: Final = re.compile(r"\(\s*+([a-z-]+)", re.IGNORECASE)
_PSEUDO: Final = re.compile(r":([a-z-]+)", re.IGNORECASE)
_ARGUMENTS: Final = re.compile(r"\([^()]*+\)")
_COMBINATOR: Final = re.compile(r"[>+~\[*.#,&]")
_PROPERTY: Final = re.compile(r"\s*+([a-z-]++)\s*+:(.*)", re.IGNORECASE | re.DOTALL)
_FUNCTION: Final = re.compile(r"(?<![a-z-])([a-z-]++)\(", re.IGNORECASE)
_UNIT: Final = re.compile(r"(?<![a-z0-9.#_-])[+-]?[0-9.]++([a-z]++|%)", re.IGNORECASE)
_KEYWORD: Final = re.compile(r"!?[a-z-]+", re.IGNORECASE)
_EXTENSION: Final = re.compile(r"\.([a-z0-9]{2,5})(?:[?#]|$)", re.IGNORECASE)


class Link(msgspec.Struct, frozen=True):
    """A link: its URL, the text that people see, and its line."""

    url: str
    text: str
    line: int


class Usage(msgspec.Struct):
    """What a document uses. `more_links` are those over the limit, which are not listed."""

    lines: dict[str, list[int]] = msgspec.field(default_factory=dict)
    links: list[Link] = msgspec.field(default_factory=list)
    more_links: int = 0
    images: int = 0
    images_without_alt: int = 0


def scan(source: str, known: Container[str]) -> Usage:
    """What a document uses of the known keys, and its links."""
    return _Scanner(source, known).scan()


class _Scanner:
    def __init__(self, source: str, known: Container[str]) -> None:
        self._source = source
        self._known = known
        self._new_lines = [found.start() for found in _NEW_LINE.finditer(source)]
        self._usage = Usage()
        # The link that is open: its URL, its line, and the text so far.
        self._link: tuple[str, int, list[str]] | None = None

    def scan(self) -> Usage:
        at = 0
        while at < len(self._source):
            token = TOKEN.match(self._source, at)
            if token is None:  # every character begins a token
                break
            begin, at = at, token.end()
            name = (token["start"] or token["end"] or "").lower()
            if token["text"]:
                self._add_text(token["text"])
            elif token["start"]:
                self._start(name, token["attributes"], self._line(begin))
                if name in _RAW_TEXT_ELEMENTS:
                    content, after = raw_text(self._source, at, name)
                    if name == "style":
                        self._style_sheet(content, at)
                    at = after
            elif token["end"] and name == "a":
                self._end_link()
        self._end_link()
        return self._usage

    def _line(self, at: int) -> int:
        return bisect.bisect_left(self._new_lines, at) + 1

    def _note(self, key: str, line: int) -> None:
        if key in self._known:
            lines = self._usage.lines.setdefault(key, [])
            if len(lines) < MAX_LINES and line not in lines:
                lines.append(line)

    def _start(self, name: str, attributes: str, line: int) -> None:
        self._note(f"tag:{name}", line)
        given = dict(reversed(list(parse_attributes(attributes))))
        for attribute, value in given.items():
            self._note(f"attribute:{attribute}", line)
            if attribute == "style":
                for key in _declarations(html.unescape(value)):
                    self._note(key, line)
        if name in ("input", "button"):
            self._note(f"type:{given.get('type', 'text' if name == 'input' else 'submit').lower()}", line)
        if name == "meta":
            self._note(f"meta:{given.get('name', '').lower()}", line)
        if name == "img":
            self._image(given, line)
        if name in ("a", "area") and "href" in given:
            self._begin_link(html.unescape(given["href"]).strip(), line, is_empty=name == "area")

    def _image(self, given: dict[str, str], line: int) -> None:
        self._usage.images += 1
        self._usage.images_without_alt += "alt" not in given
        url = given.get("src", "")[:URL_CHARACTERS].strip()
        extension = _EXTENSION.search(url)
        if url.lower().startswith("data:"):
            self._note("image:data", line)
        elif extension:
            self._note(f"image:{extension[1].lower()}", line)
        self._add_text(html.unescape(given.get("alt", "")))

    # Links.

    def _begin_link(self, url: str, line: int, *, is_empty: bool) -> None:
        self._end_link()
        self._note(f"link:{'#' if url.startswith('#') else url[:10].partition(':')[0].lower()}", line)
        self._link = url[:URL_CHARACTERS], line, []
        if is_empty:
            self._end_link()

    def _add_text(self, text: str) -> None:
        if self._link is not None and len(self._link[2]) < LINK_TEXT_CHARACTERS:
            self._link[2].append(text[: LINK_TEXT_CHARACTERS * 4])

    def _end_link(self) -> None:
        if self._link is None:
            return
        url, line, texts = self._link
        self._link = None
        if len(self._usage.links) >= MAX_LINKS:
            self._usage.more_links += 1
            return
        text = _SPACE.sub(" ", html.unescape("".join(texts))).strip()[:LINK_TEXT_CHARACTERS]
        self._usage.links.append(Link(url, text, line))

    # Style sheets.

    def _style_sheet(self, content: str, begin: int) -> None:
        content = _CSS_TEXT.sub(lambda found: _NOT_NEW_LINE.sub(" ", found[0]), content)
        for step in _CSS_STEP.finditer(content):
            text = (step[1] or "").strip()
            if text:
                line = self._line(begin + step.start() + len(step[1]) - len(step[1].lstrip()))
                for key in _prelude(text) if step[2] == "{" or text.startswith("@") else _declaration(text):
                    self._note(key, line)


def _declarations(style: str) -> Iterator[str]:
    for declaration in _CSS_TEXT.sub(" ", style).split(";"):
        yield from _declaration(declaration)


def _prelude(text: str) -> Iterator[str]:
    """The keys of an at-rule or a selector."""
    rule = _AT_RULE.match(text)
    if rule is not None:
        yield f"at:{rule[1].lower()}"
        for feature in _MEDIA_FEATURE.finditer(text):
            yield f"media:{feature[1].lower()}"
        return
    for pseudo in _PSEUDO.finditer(text):
        yield f"pseudo:{pseudo[1].lower()}"
    for combinator in _COMBINATOR.findall(_ARGUMENTS.sub("", text)):
        yield f"selector:{combinator}"


def _declaration(text: str) -> Iterator[str]:
    """The keys of a declaration, with those of its value."""
    found = _PROPERTY.match(text)
    if found is None:
        return
    name, value = found[1].lower(), found[2].lower()
    yield "property:--" if name.startswith("--") else f"property:{name}"
    for function in _FUNCTION.finditer(value):
        yield f"function:{function[1]}"
    for unit in _UNIT.finditer(value):
        yield f"unit:{unit[1]}"
    for keyword in _KEYWORD.finditer(value):
        yield f"keyword:{keyword[0]}"
        yield f"keyword:{name}:{keyword[0]}"
