"""Parser for showing a message: its header, decoded, and the leaves of its tree of parts (RFC 2045, RFC 2046).

Any octets are accepted: parsing never fails. Malformed input is parsed as far as possible, and what exceeds a limit is
omitted and `truncated` set. It is one pass over the lines that begin with two hyphens, with a stack of the open
multiparts, so the time is linear in the size and nesting needs no recursion; a line that ends an outer multipart ends
the inner ones too. A nested message is a leaf: a file to be saved. Fields and names are untrusted: decoded, without
control characters, and to be escaped where they are shown.
"""

import binascii
import re
from dataclasses import dataclass, field
from typing import Final

import msgspec

from postroad.protocol import download_names
from postroad.protocol.mime import encoded_words, header_text
from postroad.protocol.mime import parameters as mime_parameters

HEADER_OCTETS: Final = 256 * 1024
# A part has three or four fields.
PART_HEADER_OCTETS: Final = 16 * 1024
MAX_FIELDS: Final = 2_000
MAX_DEPTH: Final = 20
MAX_PARTS: Final = 500
# Lines that begin like a delimiter: half a second's work, and more than a long patch has.
MAX_DELIMITER_LINES: Final = 200_000
# RFC 2046 section 5.1.1 allows 70; some clients take more.
BOUNDARY_OCTETS: Final = 200
# The octets of the longest character in all the character sets that we read.
_CHARACTER_OCTETS: Final = 4

_EMPTY_LINE: Final = re.compile(rb"^\r?\n", re.MULTILINE)
_FOLD: Final = re.compile(r"\r?\n(?=[ \t])")
_FIELD: Final = re.compile(r"([!-9;-~]{1,200}+)[ \t]*+:(.*)", re.DOTALL)
_TYPE: Final = re.compile(r"[a-z0-9!#$&^_.+-]{1,127}/[a-z0-9!#$&^_.+-]{1,127}")
_WHITE_SPACE: Final = re.compile(r"[\t\r\n]+")
_UNSEEN: Final = re.compile(rf"[{header_text.UNSEEN}\ud800-\udfff]")
_BASE64: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_NOT_BASE64: Final = bytes(octet for octet in range(256) if octet not in _BASE64)


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """A leaf. `size` is that of the decoded body; `path` counts from one at each level, such as `1.2`.

    `content_type` is `type/subtype` in lower case; `charset` is too. `disposition` is `inline`, `attachment` or empty.
    `begin` and `end` say where the body stands in the message.
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
        return _decoded(self.content[part.begin : part.end], part.encoding)

    def text(self, part: Part, *, max_length: int) -> tuple[str, bool]:
        """At most so many characters of a part, and whether there are more. What is not in its charset is replaced."""
        body = self.body(part)
        text = body[: max_length * _CHARACTER_OCTETS].decode(_codec(part.charset), "replace")
        # Lone surrogates are no text, and could not be sent.
        text = text.encode("utf-8", "replace").decode().replace("\r\n", "\n").removeprefix("\ufeff")
        return text[:max_length], len(text) > max_length or len(body) > max_length * _CHARACTER_OCTETS


class _Header(msgspec.Struct, frozen=True):
    """The fields as written, unfolded, and where the body begins; or where we gave up, when it was too long."""

    fields: list[tuple[str, str]]
    end: int
    is_cut: bool

    def first(self, name: str) -> str:
        return next((value for given, value in self.fields if given.lower() == name), "")


@dataclass(slots=True)
class _Entity:
    """Something that is open: a multipart while its parts are read, else a leaf. Its boundary is empty then."""

    header: _Header
    content_type: str
    parameters: dict[str, str]
    path: str
    boundary: bytes = b""
    children: int = 0


@dataclass(slots=True)
class _Parser:
    """The state of the one pass."""

    content: bytes
    open: list[_Entity] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)
    marks: int = 0
    is_full: bool = False
    truncated: bool = False

    def enter(self, at: int) -> _Entity:
        """Read the header that begins here, and open what it announces."""
        parent = self.open[-1] if self.open else None
        header = self._header(at, max_length=PART_HEADER_OCTETS if parent else HEADER_OCTETS)
        is_digest = parent is not None and parent.content_type == "multipart/digest"
        kind, parameters = mime_parameters.read(header.first("content-type"))
        if _TYPE.fullmatch(kind) is None:
            # RFC 2045 section 5.2, and RFC 2046 section 5.1.5 for digests.
            kind = "message/rfc822" if is_digest else "text/plain"
        entity = _Entity(header, kind, parameters, _path(parent))
        boundary = parameters.get("boundary", "").rstrip().encode("utf-8", "replace")
        if kind.startswith("multipart/") and 0 < len(boundary) <= BOUNDARY_OCTETS and not header.is_cut:
            if len(self.open) < MAX_DEPTH:
                entity.boundary = boundary
            else:
                self.truncated = True
        self.open.append(entity)
        return entity

    def leave(self, level: int, end: int) -> None:
        """Close everything above a level; `end` is where its last line began or the message ended."""
        while len(self.open) > level:
            entity = self.open.pop()
            # A multipart in which no part was found is shown as it stands.
            if not entity.children:
                self._add(entity, end)

    def next_mark(self, at: int, end: int) -> tuple[int, int, int, bool] | None:
        """The next line that delimits parts: where it begins and ends, its level, and whether it is the last one."""
        levels = {entity.boundary: level for level, entity in reversed([*enumerate(self.open)]) if entity.boundary}
        while (found := self.content.find(b"\n--", at, end)) >= 0:
            self.marks += 1
            if self.marks > MAX_DELIMITER_LINES:
                self.truncated = True
                return None
            at = self.content.find(b"\n", found + 1)
            at = len(self.content) if at < 0 else at
            # What is longer cannot be one; a copy of each long line would not be free.
            line = self.content[found + 3 : min(at, found + 2 * BOUNDARY_OCTETS)].rstrip(b" \t\r")
            if line in levels:
                return found, at, levels[line], False
            if line.endswith(b"--") and line[:-2] in levels:
                return found, at, levels[line[:-2]], True
        return None

    def _header(self, at: int, *, max_length: int) -> _Header:
        """The header ends at an empty line, or where the next part begins."""
        limit = min(at + max_length, len(self.content))
        empty = _EMPTY_LINE.search(self.content, at, limit)
        end, body = empty.span() if empty else (limit, limit)
        mark = self.next_mark(max(at - 1, 0), end) if self.open else None
        if mark is not None:
            end = body = mark[0] + 1
        is_cut = empty is None and mark is None and limit < len(self.content)
        unfolded = _FOLD.sub("", self.content[at:end].decode("utf-8", "replace"))
        lines = unfolded.rstrip("\r\n").split("\n", MAX_FIELDS)
        if is_cut or len(lines) > MAX_FIELDS:
            self.truncated = True
        found = filter(None, map(_FIELD.fullmatch, lines[:MAX_FIELDS]))
        return _Header([(one[1], one[2].strip()) for one in found], body, is_cut)

    def _add(self, entity: _Entity, end: int) -> None:
        if len(self.parts) >= MAX_PARTS:
            self.truncated = self.is_full = True
            return
        header = entity.header
        # The rest of an oversized header is not a body.
        begin = end if header.is_cut else min(header.end, end)
        disposition, named = mime_parameters.read(header.first("content-disposition"))
        encoding = header.first("content-transfer-encoding").lower()
        part = Part(
            index=len(self.parts),
            path=entity.path or "1",
            content_type=entity.content_type,
            charset=entity.parameters.get("charset", "").strip().lower(),
            filename=download_names.safe(named.get("filename") or entity.parameters.get("name", "")),
            content_id=_shown(header.first("content-id")).strip("<> "),
            # RFC 2183 section 2.8: what is not known is an attachment.
            disposition=disposition if disposition in {"", "inline"} else "attachment",
            encoding=encoding,
            size=len(_decoded(self.content[begin:end], encoding)),
            begin=begin,
            end=end,
        )
        self.parts.append(part)


def read(content: bytes) -> ParsedMessage:
    """The header and the leaves of a message."""
    walk = _Parser(content)
    root = walk.enter(0)
    at = root.header.end
    while walk.open and not walk.is_full:
        mark = walk.next_mark(max(at - 1, 0), len(content))
        if mark is None:
            break
        begin, end, level, is_last = mark
        walk.leave(level + (not is_last), _line_end(content, begin))
        at = end + 1
        if not is_last:
            at = walk.enter(at).header.end
            walk.open[level].children += 1
    walk.leave(0, len(content))
    headers = tuple((name, _shown(encoded_words.decode(value))) for name, value in root.header.fields)
    return ParsedMessage(content, headers, tuple(walk.parts), walk.truncated)


def _path(parent: _Entity | None) -> str:
    if parent is None:
        return ""
    number = str(parent.children + 1)
    return f"{parent.path}.{number}" if parent.path else number


def _line_end(content: bytes, at: int) -> int:
    """Where the line before this LF ends; the line end before a delimiter belongs to it (RFC 2046 section 5.1.1)."""
    return at - 1 if content[at - 1 : at] == b"\r" else at


def _shown(text: str) -> str:
    """One line of text, without what could hide or turn what stands beside it."""
    return _UNSEEN.sub("\ufffd", _WHITE_SPACE.sub(" ", text))


def _codec(charset: str) -> str:
    """Nothing, ASCII and what we do not know is UTF-8, which ASCII is a part of."""
    return charset if charset in encoded_words.CHARSETS and charset != "us-ascii" else "utf-8"


def _decoded(octets: bytes, encoding: str) -> bytes:
    if encoding == "quoted-printable":
        return binascii.a2b_qp(octets)
    return _from_base64(octets) if encoding == "base64" else octets


def _from_base64(octets: bytes) -> bytes:
    try:
        return binascii.a2b_base64(octets + b"==")  # which some writers leave out
    except binascii.Error:
        kept = octets.translate(None, _NOT_BASE64)
        return binascii.a2b_base64(kept[: len(kept) - (len(kept) % 4 == 1)] + b"==")
