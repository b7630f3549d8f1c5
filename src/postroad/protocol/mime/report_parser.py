"""The parts and fields of a report from outside. Parsing never fails and is bounded.

Only the first 256 KiB are parsed, and every step is linear in them. `part_walker.py` finds the parts; a nested message
is one part and is not opened, because its content is not the report's.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from postroad.protocol.mime import part_walker, transfer_encoding

# A report starts with what it says; the original message follows, which we have.
MAX_BYTES: Final = 256 * 1024
# Mail that went a long way has some dozens.
MAX_FIELDS: Final = 1_000
# A hundred addresses fit into one field.
FIELD_CHARACTERS: Final = 16_000

BOUNDS: Final = part_walker.Bounds(
    header_octets=MAX_BYTES,
    part_header_octets=MAX_BYTES,
    fields=MAX_FIELDS,
    part_fields=MAX_FIELDS,
    depth=8,  # reports have two levels
    parts=100,
    delimiter_lines=10_000,
    strict_types=False,
)

_FOLD: Final = re.compile(r"\n[ \t]+")


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
        encoding = self.fields.get("content-transfer-encoding", "").lower()
        return transfer_encoding.decode(self.body, encoding, repair=False).decode(errors="replace")


def walk(content: bytes) -> Iterator[Part]:
    """The leaves of a message, in order; the message itself may be the only one. A multipart without parts has none."""
    content = _first_bytes(content)
    for leaf in part_walker.Walker(content, BOUNDS).leaves():
        if not leaf.boundary:
            head = content[leaf.begin : leaf.body].decode(errors="replace")
            yield Part(read_fields(head), content[leaf.body : leaf.end])


def header(content: bytes) -> Mapping[str, str]:
    head, _, _ = (b"\n" + _first_bytes(content)).partition(b"\n\n")
    return read_fields(head.decode(errors="replace"))


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
