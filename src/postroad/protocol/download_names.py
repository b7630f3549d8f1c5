"""File names for downloads, made from untrusted names (RFC 6266).

`safe` accepts anything: a path is removed, and so are invisible characters and those that change the order of text. The
value in `Content-Disposition` is ASCII without escapes, which browsers interpret differently; the name itself follows
in the extended form (RFC 8187), which HTTP does not split into pieces as mail does.
"""

import re
import urllib.parse
from typing import Final

from postroad.protocol import address_syntax, file_names

MAX_CHARACTERS: Final = file_names.MAX_CHARACTERS
# Longer ones are no extensions; this one is kept when a name is cut.
_EXTENSION_CHARACTERS: Final = 20
# Besides what no header may hold: marks of direction that are not seen, halves of characters, and the byte order mark.
_UNSEEN: Final = re.compile(rf"[{address_syntax.UNSEEN}\u061c\u200b-\u200f\ufeff\ud800-\udfff]")
_SEPARATOR: Final = re.compile(r"[/\\]")
_ORDINARY: Final = re.compile(r"[A-Za-z0-9_.() +,@-]+")
_ESCAPED: Final = re.compile(r'["%;]')


def safe(name: str) -> str | None:
    """The last part of the name without what is not seen; None when nothing is left of it."""
    last = _SEPARATOR.split(_UNSEEN.sub("", name))[-1].strip()
    if len(last) > MAX_CHARACTERS:
        stem, dot, extension = last.rpartition(".")
        end = f".{extension}" if dot and stem and len(extension) <= _EXTENSION_CHARACTERS else ""
        last = last[: MAX_CHARACTERS - len(end)] + end
    return None if last in {"", ".", ".."} else last


def content_disposition(name: str) -> str:
    """The value of the field in an answer over HTTP: a file to be saved, never one to be shown."""
    filename = safe(name) or "download"
    if _ORDINARY.fullmatch(filename):
        return f'attachment; filename="{filename}"'
    ascii_fallback = _ESCAPED.sub("_", file_names.ascii_fallback(filename))
    return f"attachment; filename=\"{ascii_fallback}\"; filename*=UTF-8''{urllib.parse.quote(filename, safe='')}"
