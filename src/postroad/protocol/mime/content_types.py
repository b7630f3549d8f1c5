"""The `Content-Type` of an attachment: given by a caller, or derived from the file name.

A given type is `type/subtype` with parameters (RFC 2045 section 5.1) and is written as given. Composite types are
refused, because RFC 2046 allows no encoding for `multipart` and `message` and a reader would look for parts in them;
only a whole message (`message/rfc822`) that needs no encoding is a file. A derived type comes from the table below,
never from files of the host, so that all hosts agree.
"""

import codecs
import re
from typing import Final

DEFAULT: Final = "application/octet-stream"
MAX_CHARACTERS: Final = 255
_WORD: Final = r"[A-Za-z0-9!#$%&'*+.^_`{|}~\-]+"
_QUOTED: Final = r'"(?:[ !#-\[\]-~]|\\[ -~])*"'
_PARAMETER: Final = rf" *; *{_WORD}=(?:{_WORD}|{_QUOTED})"
MESSAGE: Final = "message/rfc822"
# Not `multipart/…`, of `message/…` only `message/rfc822`, and nothing that begins an encoded word (RFC 2047).
SCHEMA_PATTERN: Final = (
    r"^(?!.*=\?)(?![Mm][Uu][Ll][Tt][Ii][Pp][Aa][Rr][Tt]/)"
    r"(?![Mm][Ee][Ss][Ss][Aa][Gg][Ee]/(?![Rr][Ff][Cc]822(?:[ ;]|$)))"
    rf"{_WORD}/{_WORD}(?:{_PARAMETER})*$"
)

_SHAPE: Final = re.compile(rf"{_WORD}/{_WORD}(?:{_PARAMETER})*")
_TYPE_OR_PARAMETER: Final = re.compile(rf"{_WORD}/{_WORD}|{_WORD}=(?:{_WORD}|{_QUOTED})")

# By extension: what people attach to mail, by the names registered with IANA. Everything else is a stream of octets.
TYPES: Final = {
    "7z": "application/x-7z-compressed",
    "aac": "audio/aac",
    "avi": "video/x-msvideo",
    "avif": "image/avif",
    "bmp": "image/bmp",
    "bz2": "application/x-bzip2",
    "css": "text/css",
    "csv": "text/csv",
    "doc": "application/msword",
    "docm": "application/vnd.ms-word.document.macroEnabled.12",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "eml": MESSAGE,
    "epub": "application/epub+zip",
    "flac": "audio/flac",
    "gif": "image/gif",
    "gpx": "application/gpx+xml",
    "gz": "application/gzip",
    "heic": "image/heic",
    "heif": "image/heif",
    "htm": "text/html",
    "html": "text/html",
    "ico": "image/vnd.microsoft.icon",
    "ics": "text/calendar",
    "jpeg": "image/jpeg",
    "jpg": "image/jpeg",
    "js": "text/javascript",
    "json": "application/json",
    "jsonl": "application/jsonl",
    "log": "text/plain",
    "m4a": "audio/mp4",
    "md": "text/markdown",
    "mkv": "video/matroska",
    "mov": "video/quicktime",
    "mp3": "audio/mpeg",
    "mp4": "video/mp4",
    "mpeg": "video/mpeg",
    "mpg": "video/mpeg",
    "odp": "application/vnd.oasis.opendocument.presentation",
    "ods": "application/vnd.oasis.opendocument.spreadsheet",
    "odt": "application/vnd.oasis.opendocument.text",
    "ogg": "audio/ogg",
    "opus": "audio/ogg",
    "otf": "font/otf",
    "p7m": "application/pkcs7-mime",
    "p7s": "application/pkcs7-signature",
    "pdf": "application/pdf",
    "pgp": "application/pgp-encrypted",
    "pkpass": "application/vnd.apple.pkpass",
    "png": "image/png",
    "ppt": "application/vnd.ms-powerpoint",
    "pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    "ps": "application/postscript",
    "rar": "application/vnd.rar",
    "rtf": "application/rtf",
    "svg": "image/svg+xml",
    "tar": "application/x-tar",
    "tgz": "application/gzip",
    "tif": "image/tiff",
    "tiff": "image/tiff",
    "tsv": "text/tab-separated-values",
    "ttf": "font/ttf",
    "txt": "text/plain",
    "vcf": "text/vcard",
    "wav": "audio/wav",
    "webm": "video/webm",
    "webp": "image/webp",
    "woff": "font/woff",
    "woff2": "font/woff2",
    "xls": "application/vnd.ms-excel",
    "xlsm": "application/vnd.ms-excel.sheet.macroEnabled.12",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "xml": "application/xml",
    "xz": "application/x-xz",
    "yaml": "application/yaml",
    "yml": "application/yaml",
    "zip": "application/zip",
    "zst": "application/zstd",
}


class ContentTypeError(ValueError):
    """The text is not the type of a file. The message says why and is safe to show."""


def check(text: str) -> list[str]:
    if len(text) > MAX_CHARACTERS:
        raise ContentTypeError(f"a content type is at most {MAX_CHARACTERS} characters long")
    if _SHAPE.fullmatch(text) is None or "=?" in text:
        raise ContentTypeError("a content type looks like 'image/png' or 'text/csv; charset=utf-8'")
    if text.lower().startswith(("multipart/", "message/")) and not is_message(text):
        raise ContentTypeError(f"a file cannot be sent as multipart or part of a message; use '{DEFAULT}'")
    return _TYPE_OR_PARAMETER.findall(text)


def is_message(text: str) -> bool:
    return text.partition(";")[0].rstrip(" ").lower() == MESSAGE


def with_charset(words: list[str], content: bytes) -> list[str]:
    """The words of a text type with a charset: the given one, or the one that the content shows.

    Nothing is guessed: content that is neither ASCII nor UTF-8 and has no byte order mark stays without.
    """
    if any(word.lower().startswith("charset=") for word in words[1:]):
        return words
    if content.isascii():
        return [*words, "charset=us-ascii"]
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return [*words, "charset=utf-16"]
    try:
        content.decode()
    except UnicodeDecodeError:
        return words
    return [*words, "charset=utf-8"]


def guess(filename: str) -> str:
    """The type that the file's extension stands for, else `application/octet-stream`."""
    _, dot, extension = filename.rpartition(".")
    return TYPES.get(extension.lower(), DEFAULT) if dot else DEFAULT
