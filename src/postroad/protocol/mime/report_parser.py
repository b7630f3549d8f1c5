"""The parts of a report that came from outside: a small MIME walker that never fails and is bounded.

Only the first 256 KiB are parsed, and every step is linear in them. Parts are returned in order; a nested message
(RFC 2046 section 5.2) is one part and is not opened, because its content is not the report's. Malformed input is parsed
as far as possible, and the rest is omitted.
"""

import binascii
import itertools
import re
from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

# A report starts with what it says; the original message follows, which we have.
MAX_BYTES: Final = 256 * 1024
# Reports have two levels; each more costs another look at the same bytes.
MAX_DEPTH: Final = 8
MAX_PARTS_OPENED: Final = 100
# Lines that begin like a delimiter, in one multipart.
MAX_DELIMITERS: Final = 1_000
# Mail that went a long way has some dozens.
MAX_FIELDS: Final = 1_000
# A hundred addresses fit into one field.
FIELD_CHARACTERS: Final = 16_000

_FOLD: Final = re.compile(r"\n[ \t]+")
_BOUNDARY: Final = re.compile(r';\s*boundary\s*=\s*(?:"([^"]+)"|([^\s;"]+))', re.IGNORECASE)


class Part(msgspec.Struct, frozen=True):
    """A leaf of the tree, with the names of its header fields in lower case. Line ends are LF."""

    fields: Mapping[str, str]
    body: bytes

    @property
    def content_type(self) -> str:
        """Such as `text/plain`, which is also what a missing type means (RFC 2045 section 5.2)."""
        return self.fields.get("content-type", "").partition(";")[0].strip().lower() or "text/plain"

    @property
    def text(self) -> str:
        """The body, decoded; whatever is not UTF-8 is replaced."""
        return _decode(self.body, self.fields.get("content-transfer-encoding", "")).decode(errors="replace")


def walk(content: bytes) -> Iterator[Part]:
    """The leaves of a message, in order; the message itself may be the only one."""
    waiting = [(_first_bytes(content), 0)]
    for _ in range(MAX_PARTS_OPENED):
        if not waiting:
            return
        piece, depth = waiting.pop()
        part = _open(piece)
        boundary = _BOUNDARY.search(part.fields.get("content-type", ""))
        if boundary and part.content_type.startswith("multipart/") and depth < MAX_DEPTH:
            pieces = itertools.islice(_pieces(part.body, boundary[1] or boundary[2]), MAX_PARTS_OPENED)
            waiting += [(inner, depth + 1) for inner in pieces][::-1]
        else:
            yield part


def header(content: bytes) -> Mapping[str, str]:
    """The header fields of a message."""
    return _open(_first_bytes(content)).fields


def read_fields(text: str) -> dict[str, str]:
    """Unfolded fields by name in lower case; of a name that comes twice, the first counts."""
    fields: dict[str, str] = {}
    for line in _FOLD.sub(" ", text).split("\n", maxsplit=MAX_FIELDS)[:MAX_FIELDS]:
        name, colon, value = line.partition(":")
        if colon and name:
            fields.setdefault(name.strip().lower(), value[:FIELD_CHARACTERS].strip())
    return fields


def _first_bytes(content: bytes) -> bytes:
    return content[:MAX_BYTES].replace(b"\r\n", b"\n")


def _open(content: bytes) -> Part:
    if content.startswith(b"\n"):
        return Part({}, content[1:])
    head, _, body = content.partition(b"\n\n")
    return Part(read_fields(head.decode(errors="replace")), body)


def _pieces(body: bytes, boundary: str) -> Iterator[bytes]:
    """What stands between the delimiter lines (RFC 2046 section 5.1.1); the last of them may be missing."""
    body, mark = b"\n" + body + b"\n", b"\n--" + boundary.encode()
    begin, end = None, 0
    for _ in range(MAX_DELIMITERS):
        found = body.find(mark, end)
        if found < 0:
            break
        end = body.index(b"\n", found + 1)
        rest = body[found + len(mark) : end].rstrip(b" \t")
        if rest in {b"", b"--"}:
            if begin is not None:
                yield body[begin:found]
            begin = end + 1
        if rest == b"--":
            return
    if begin is not None:
        yield body[begin:-1]


def _decode(body: bytes, encoding: str) -> bytes:
    encoding = encoding.strip().lower()
    try:
        if encoding == "base64":
            return binascii.a2b_base64(body)
        return binascii.a2b_qp(body) if encoding == "quoted-printable" else body
    except binascii.Error:
        return b""
