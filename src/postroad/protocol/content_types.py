"""What kind of file an attachment is: a `Content-Type` given by a caller, or derived from a file's name.

A given type is `type/subtype` with parameters (RFC 2045 section 5.1) and is written as given. Composite types are
refused: a file is carried in base64, which RFC 2046 forbids for `multipart` and `message`, and a reader would look
for parts in it. A derived type comes from the table that Python ships, never from files of the machine, so that every
host agrees.
"""

import functools
import mimetypes
import re
from typing import Final

DEFAULT: Final = "application/octet-stream"
MAXIMUM_CHARACTERS: Final = 255
_WORD: Final = r"[A-Za-z0-9!#$%&'*+.^_`{|}~\-]+"
_QUOTED: Final = r'"(?:[ !#-\[\]-~]|\\[ -~])*"'
_PARAMETER: Final = rf" *; *{_WORD}=(?:{_WORD}|{_QUOTED})"
# Not `multipart/…`, not `message/…`, and nothing that begins an encoded word (RFC 2047).
SCHEMA_PATTERN: Final = (
    r"^(?!.*=\?)(?![Mm][Uu][Ll][Tt][Ii][Pp][Aa][Rr][Tt]/)(?![Mm][Ee][Ss][Ss][Aa][Gg][Ee]/)"
    rf"{_WORD}/{_WORD}(?:{_PARAMETER})*$"
)

_SHAPE: Final = re.compile(rf"{_WORD}/{_WORD}(?:{_PARAMETER})*")
_TYPE_OR_PARAMETER: Final = re.compile(rf"{_WORD}/{_WORD}|{_WORD}=(?:{_WORD}|{_QUOTED})")


class ContentTypeError(ValueError):
    """The text is not the type of a file. The message says why and is safe to show."""


def check(text: str) -> list[str]:
    """The type and its parameters, as written, or a `ContentTypeError`."""
    if len(text) > MAXIMUM_CHARACTERS:
        raise ContentTypeError(f"a content type is at most {MAXIMUM_CHARACTERS} characters long")
    if _SHAPE.fullmatch(text) is None or "=?" in text:
        raise ContentTypeError("a content type looks like 'image/png' or 'text/csv; charset=utf-8'")
    if text.lower().startswith(("multipart/", "message/")):
        raise ContentTypeError(f"a file cannot be sent as multipart or message; use '{DEFAULT}'")
    return _TYPE_OR_PARAMETER.findall(text)


def guess(filename: str) -> str:
    """The type that the file's extension stands for, else `application/octet-stream`."""
    extension = "." + filename.rpartition(".")[2].lower()
    guessed = _table().get(extension, DEFAULT)
    return DEFAULT if guessed.startswith(("multipart/", "message/")) else guessed


@functools.cache
def _table() -> dict[str, str]:
    return mimetypes.MimeTypes(filenames=()).types_map[True]
