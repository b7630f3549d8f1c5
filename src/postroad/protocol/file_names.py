"""The name of an attached file in its `Content-Disposition` (RFC 2183).

An ordinary ASCII name is a quoted string. Every other name is percent-encoded UTF-8 (RFC 2231, RFC 5987), in numbered
pieces when it is long. No ASCII fallback stands beside it: strict parsers report the second parameter as a defect, and
every current reader knows the extended form.
"""

import re
import unicodedata
import urllib.parse
from typing import Final

from postroad.protocol import address_syntax
from postroad.protocol.mime import header_fields, header_text

MAX_CHARACTERS: Final = 255
# JSON Schema's view of `check`: no path, no control characters, no turned directions, no encoded words.
SCHEMA_PATTERN: Final = (
    r"^(?!\.{1,2}$)(?!.*=\?[^?]*\?[bBqQ]\?)"
    rf"[^/\\{address_syntax.UNSEEN}]{{1,{MAX_CHARACTERS}}}$"
)
# Single spaces between printable characters; what is beside them does not survive every reader of quoted strings.
_ORDINARY: Final = re.compile(r"[!-~]+(?: [!-~]+)*")
_NOT_ENCODED: Final = "!#$&+^`{}|"  # of RFC 5987's attr-char, besides the unreserved ones
_SECTION_CHARACTERS: Final = 50  # with ` filename*0*=utf-8''` and `;`, a line of at most 76


def check(filename: str) -> None:
    """Refuse what is not the plain name of a file."""
    if not 0 < len(filename) <= MAX_CHARACTERS:
        raise header_text.HeaderError(f"a file name must have 1 to {MAX_CHARACTERS} characters")
    if "/" in filename or "\\" in filename or filename in {".", ".."}:
        raise header_text.HeaderError("a file name must not contain a path")
    header_text.check_label(filename)


def content_disposition(kind: str, filename: str) -> str:
    """The field for a file that is `attachment` or `inline`."""
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


def ascii_fallback(filename: str) -> str:
    """The name in ASCII: accents dropped, other characters underscored."""
    plain = unicodedata.normalize("NFKD", filename)
    kept = "".join(character for character in plain if not unicodedata.combining(character))
    return re.sub(r"[^!-~]|[=?/\\]", "_", kept)[:MAX_CHARACTERS]
