"""The tokens of an HTML document, in linear time: tags, text, comments, and the content of raw text elements.

It does not depend on parsing as a browser does, and accepts any text; whoever uses it decides what a token means.
"""

import re
from collections.abc import Iterator
from typing import Final

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


def attributes(text: str) -> Iterator[tuple[str, str]]:
    """The attributes of a tag: names in lower case, and values with their references to characters."""
    for found in _ATTRIBUTE.finditer(text):
        yield found[1].lower(), found["double"] or found["single"] or found["bare"] or ""


def raw_text(source: str, at: int, name: str) -> tuple[str, int]:
    """The content of a raw text element, and the position after its end tag."""
    end = re.compile(rf"</{name}(?=[\s/>])[^>]*+>?", re.IGNORECASE).search(source, at)
    return (source[at : end.start()], end.end()) if end else (source[at:], len(source))
