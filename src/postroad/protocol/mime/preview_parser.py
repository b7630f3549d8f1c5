"""Parser for showing a message: its header, decoded, and the leaves of its tree of parts.

`part_walker.py` finds them in any octets, and what exceeds a limit is omitted and `truncated` set. A nested message is
a leaf: a file to be saved. Fields and names are untrusted: decoded, without control characters, and to be escaped where
they are shown.
"""

import re
from typing import Final

import msgspec

from postroad.protocol.mime import address, file_names, header_fields, part_walker, transfer_encoding

BOUNDS: Final = part_walker.Bounds(
    header_octets=256 * 1024,
    part_header_octets=16 * 1024,
    fields=2_000,
    part_fields=100,  # a part has three or four
    depth=20,
    parts=500,
    delimiter_lines=200_000,  # half a second's work, and more than a long patch has
    strict_types=True,
)
# The octets of the longest character in all the character sets that we read.
_CHARACTER_OCTETS: Final = 4

_WHITE_SPACE: Final = re.compile(r"[\t\r\n]+")
_UNSEEN: Final = re.compile(rf"[{address.UNSEEN}\ud800-\udfff]")


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """A leaf. `size` is that of the decoded body; `path` counts from one at each level, such as `1.2`.

    `content_type` is `type/subtype` in lower case; `charset` is too. `disposition` is `inline`, `attachment` or empty.
    `begin` and `end` delimit the body in the message.
    """

    index: int
    path: str
    content_type: str
    charset: str
    filename: str | None
    content_id: str
    disposition: str
    encoding: str
    size: int
    begin: int
    end: int


class ParsedMessage(msgspec.Struct, frozen=True):
    """What is in a message: its header fields in order, for people, and its leaves in order."""

    content: bytes
    headers: tuple[tuple[str, str], ...]
    parts: tuple[Part, ...]
    truncated: bool

    def body(self, part: Part) -> bytes:
        """The octets of a part without their transfer encoding."""
        return transfer_encoding.decode(self.content[part.begin : part.end], part.encoding, repair=True)

    def text(self, part: Part, *, max_length: int) -> tuple[str, bool]:
        """At most `max_length` characters of a part, and whether there are more. Invalid octets are replaced."""
        body = self.body(part)
        # A message ends in a line end, which is not part of a text that was given without one.
        if part.end == len(self.content) and part.encoding != "base64":
            body = body.removesuffix(b"\r\n")
        text = body[: max_length * _CHARACTER_OCTETS].decode(_codec(part.charset), "replace")
        # Lone surrogates are no text, and could not be sent.
        text = text.encode("utf-8", "replace").decode().replace("\r\n", "\n").removeprefix("\ufeff")
        return text[:max_length], len(text) > max_length or len(body) > max_length * _CHARACTER_OCTETS


def read(content: bytes) -> ParsedMessage:
    walker = part_walker.Walker(content, BOUNDS)
    headers = tuple((name, shown(header_fields.decode_words(value))) for name, value in walker.root.fields)
    parts = tuple(_part(content, index, leaf) for index, leaf in enumerate(walker.leaves()))
    return ParsedMessage(content, headers, parts, walker.truncated)


def _part(content: bytes, index: int, leaf: part_walker.Entity) -> Part:
    disposition, named = part_walker.read_parameters(leaf.first("content-disposition"))
    encoding = leaf.first("content-transfer-encoding").lower()
    return Part(
        index=index,
        path=leaf.path or "1",
        content_type=leaf.content_type,
        charset=leaf.parameters.get("charset", "").strip().lower(),
        filename=file_names.download_name(named.get("filename") or leaf.parameters.get("name", "")),
        content_id=shown(leaf.first("content-id")).strip("<> "),
        # RFC 2183 section 2.8: what is not known is an attachment.
        disposition=disposition if disposition in {"", "inline"} else "attachment",
        encoding=encoding,
        size=len(transfer_encoding.decode(content[leaf.body : leaf.end], encoding, repair=True)),
        begin=leaf.body,
        end=leaf.end,
    )


def shown(text: str) -> str:
    """One line of text, without control and bidirectional characters."""
    return _UNSEEN.sub("\ufffd", _WHITE_SPACE.sub(" ", text))


def _codec(charset: str) -> str:
    """The charset to decode with: UTF-8 for none, ASCII and unknown ones."""
    return charset if charset in header_fields.CHARSETS and charset != "us-ascii" else "utf-8"
