"""Names of files: in the `Content-Disposition` of an attachment (RFC 2183), and of a download (RFC 6266)."""

import re
import unicodedata
import urllib.parse
from typing import Final

from postroad.protocol.mime import address, header_fields

MAX_CHARACTERS: Final = 255
# JSON Schema's view of `check`: no path, no control characters, no turned directions, no encoded words.
SCHEMA_PATTERN: Final = (
    r"^(?!\.{1,2}$)(?!.*=\?[^?]*\?[bBqQ]\?)"
    rf"[^/\\{address.UNSEEN}]{{1,{MAX_CHARACTERS}}}$"
)
# Single spaces between printable characters; what is beside them does not survive every reader of quoted strings.
_ORDINARY: Final = re.compile(r"[!-~]+(?: [!-~]+)*")
_NOT_ENCODED: Final = "!#$&+^`{}|"  # of RFC 5987's attr-char, besides the unreserved ones
_SECTION_CHARACTERS: Final = 50  # with ` filename*0*=utf-8''` and `;`, a line of at most 76


def check(filename: str) -> None:
    """Refuse what is not the plain name of a file."""
    if not 0 < len(filename) <= MAX_CHARACTERS:
        raise header_fields.HeaderError(f"a file name must have 1 to {MAX_CHARACTERS} characters")
    if "/" in filename or "\\" in filename or filename in {".", ".."}:
        raise header_fields.HeaderError("a file name must not contain a path")
    header_fields.check_label(filename)


def content_disposition(kind: str, filename: str) -> str:
    check(filename)
    if _ORDINARY.fullmatch(filename) is not None and "=?" not in filename:
        parameters = [f"filename={header_fields.quote(filename)}"]
    else:
        parameters = _extended(filename)
    words = [f"{word};" for word in (kind, *parameters[:-1])] + parameters[-1:]
    return header_fields.fold("Content-Disposition", [header_fields.Piece(" ", word) for word in words])


def _extended(filename: str) -> list[str]:
    """The name by RFC 2231, in sections (section 3) when it is longer than a line. No character is cut in two."""
    sections = [""]
    for character in filename:
        encoded = urllib.parse.quote(character, safe=_NOT_ENCODED)
        if len(sections[-1]) + len(encoded) > _SECTION_CHARACTERS:
            sections.append("")
        sections[-1] += encoded
    first, *others = sections
    if not others:
        return [f"filename*=utf-8''{first}"]
    return [f"filename*0*=utf-8''{first}"] + [f"filename*{number}*={text}" for number, text in enumerate(others, 1)]


def ascii_name(filename: str) -> str:
    """The name in ASCII: accents dropped, other characters underscored."""
    plain = unicodedata.normalize("NFKD", filename)
    kept = "".join(character for character in plain if not unicodedata.combining(character))
    return re.sub(r"[^!-~]|[=?/\\]", "_", kept)[:MAX_CHARACTERS]


# File names for downloads, made from untrusted names (RFC 6266).
#
# `safe` accepts anything: a path is removed, and so are invisible characters and those that change the order of text.
# The value in `Content-Disposition` is ASCII without escapes, which browsers interpret differently; the name itself
# follows in the extended form (RFC 8187), which HTTP does not split into pieces as mail does.

# Longer ones are no extensions; this one is kept when a name is cut.
_EXTENSION_CHARACTERS: Final = 20
# Besides what no header may hold: marks of direction that are not seen, halves of characters, and the byte order mark.
_UNSEEN: Final = re.compile(rf"[{address.UNSEEN}\u061c\u200b-\u200f\ufeff\ud800-\udfff]")
_SEPARATOR: Final = re.compile(r"[/\\]")
_ORDINARY_DOWNLOAD: Final = re.compile(r"[A-Za-z0-9_.() +,@-]+")
_ESCAPED: Final = re.compile(r'["%;]')


def download_name(name: str) -> str | None:
    """The last part of the name without what is not seen; None when nothing is left of it."""
    last = _SEPARATOR.split(_UNSEEN.sub("", name))[-1].strip()
    if len(last) > MAX_CHARACTERS:
        stem, dot, extension = last.rpartition(".")
        end = f".{extension}" if dot and stem and len(extension) <= _EXTENSION_CHARACTERS else ""
        last = last[: MAX_CHARACTERS - len(end)] + end
    return None if last in {"", ".", ".."} else last


def download_disposition(name: str) -> str:
    """The value of the field in an answer over HTTP: a file to be saved, never one to be shown."""
    filename = download_name(name) or "download"
    if _ORDINARY_DOWNLOAD.fullmatch(filename):
        return f'attachment; filename="{filename}"'
    ascii_fallback = _ESCAPED.sub("_", ascii_name(filename))
    return f"attachment; filename=\"{ascii_fallback}\"; filename*=UTF-8''{urllib.parse.quote(filename, safe='')}"
