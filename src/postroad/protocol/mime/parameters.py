"""The value of a MIME field and its parameters, as found in real mail (RFC 2045 section 5.1, RFC 2231).

Parsing never fails and is linear in the value. A parameter may come in numbered pieces, with a character set, or with
encoded words in quotes, which RFC 2047 forbids and most programs write. Where a name is given in the form of RFC 2231
and in a plain one, the first counts: the plain one is a fallback for old readers. A backslash before anything but a
quote or a backslash is literal, because programs put Windows paths between quotes unescaped.
"""

import itertools
import re
import urllib.parse
from typing import Final

from postroad.protocol.mime import encoded_words

# Real fields have a handful; pieces of RFC 2231 are some fifty characters each.
MAX_PARAMETERS: Final = 200
# What people read. Boundaries are for programs, and may look like encoded words.
_NAMES: Final = frozenset({"filename", "name"})
_PARAMETER: Final = re.compile(
    r';\s*+([^\s=;"]{1,80}+)\s*+=\s*+(?:"((?:[^"\\]|\\.)*+)"?|([^\s;"]*+))', re.DOTALL | re.ASCII
)
_QUOTED_PAIR: Final = re.compile(r'\\(["\\])')
_NAME: Final = re.compile(r"([^*]+)(?:\*(\d{1,3}))?(\*)?", re.ASCII)


def read(value: str) -> tuple[str, dict[str, str]]:
    """The value before the first semicolon, in lower case, and the parameters by name in lower case."""
    plain: dict[str, str] = {}
    pieces: dict[str, dict[int, tuple[str, bool]]] = {}
    for found in itertools.islice(_PARAMETER.finditer(value), MAX_PARAMETERS):
        text = found[3] if found[2] is None else _QUOTED_PAIR.sub(r"\1", found[2])
        given = found[1].lower()
        name = _NAME.fullmatch(given)
        if name is None or not (name[2] or name[3]):
            plain.setdefault(given, encoded_words.decode(text) if given in _NAMES else text)
        else:
            pieces.setdefault(name[1], {}).setdefault(int(name[2] or 0), (text, name[3] is not None))
    extended = {name: _join(numbered) for name, numbered in pieces.items() if 0 in numbered}
    return value.partition(";")[0].strip().lower(), plain | extended


def _join(numbered: dict[int, tuple[str, bool]]) -> str:
    """The pieces up to the first that is missing (RFC 2231 section 4.1)."""
    run = [numbered[number] for number in itertools.takewhile(numbered.__contains__, itertools.count())]
    charset, (first, is_encoded) = "utf-8", run[0]
    if is_encoded and first.count("'") > 1:
        charset, _, first = first.split("'", 2)
        run[0] = (first, True)
    octets = b"".join(urllib.parse.unquote_to_bytes(text) if encoded else text.encode() for text, encoded in run)
    return octets.decode(charset if charset.lower() in encoded_words.CHARSETS else "utf-8", "replace")
