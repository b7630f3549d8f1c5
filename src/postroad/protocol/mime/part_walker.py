"""Walker over the parts of a MIME message (RFC 2045, RFC 2046), for the parsers of untrusted mail.

Any octets are accepted: walking never fails. Malformed input is parsed as far as possible, and what exceeds a bound is
omitted and `truncated` set. It is one pass over the lines that begin with two hyphens, with a stack of the open
multiparts, so the time is linear in the size and nesting needs no recursion; a line that ends an outer multipart ends
the inner ones too. A nested message is a leaf and is not opened. Lines end in CRLF or LF.
"""

import itertools
import re
import urllib.parse
from collections.abc import Iterator
from typing import Final

import msgspec

from postroad.protocol.mime import header_fields

# The value of a MIME field and its parameters, as found in real mail (RFC 2045 section 5.1, RFC 2231).
#
# Parsing never fails and is linear in the value. A parameter may come in numbered pieces, with a character set, or with
# encoded words in quotes, which RFC 2047 forbids and most programs write. Where a name is given in the form of RFC 2231
# and in a plain one, the first counts: the plain one is a fallback for old readers. A backslash before anything but a
# quote or a backslash is literal, because programs put Windows paths between quotes unescaped.

# Real fields have a handful; pieces of RFC 2231 are some fifty characters each.
MAX_PARAMETERS: Final = 200
# What people read. Boundaries are for programs, and may look like encoded words.
_NAMES: Final = frozenset({"filename", "name"})
_PARAMETER: Final = re.compile(
    r';\s*+([^\s=;"]{1,80}+)\s*+=\s*+(?:"((?:[^"\\]|\\.)*+)"?|([^\s;"]*+))', re.DOTALL | re.ASCII
)
_QUOTED_PAIR: Final = re.compile(r'\\(["\\])')
_PARAMETER_NAME: Final = re.compile(r"([^*]+)(?:\*(\d{1,3}))?(\*)?", re.ASCII)


def read_parameters(value: str) -> tuple[str, dict[str, str]]:
    """The value before the first semicolon, in lower case, and the parameters by name in lower case."""
    plain: dict[str, str] = {}
    pieces: dict[str, dict[int, tuple[str, bool]]] = {}
    for found in itertools.islice(_PARAMETER.finditer(value), MAX_PARAMETERS):
        text = found[3] if found[2] is None else _QUOTED_PAIR.sub(r"\1", found[2])
        given = found[1].lower()
        name = _PARAMETER_NAME.fullmatch(given)
        if name is None or not (name[2] or name[3]):
            plain.setdefault(given, header_fields.decode_words(text) if given in _NAMES else text)
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
    return octets.decode(charset if charset.lower() in header_fields.CHARSETS else "utf-8", "replace")


# RFC 2046 section 5.1.1 allows 70; some clients take more.
BOUNDARY_OCTETS: Final = 200

_EMPTY_LINE: Final = re.compile(rb"^\r?\n", re.MULTILINE)
_FOLD: Final = re.compile(r"\r?\n(?=[ \t])")
_FIELD: Final = re.compile(r"([!-9;-~]{1,200}+)[ \t]*+:(.*)", re.DOTALL)
_TYPE: Final = re.compile(r"[a-z0-9!#$&^_.+-]{1,127}/[a-z0-9!#$&^_.+-]{1,127}")


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """How much is parsed. `fields` and `part_fields` count per header, `delimiter_lines` what begins like a delimiter.

    `strict_types`: a multipart whose subtype is malformed is not opened.
    """

    header_octets: int
    part_header_octets: int
    fields: int
    part_fields: int
    depth: int
    parts: int
    delimiter_lines: int
    strict_types: bool


class Entity(msgspec.Struct):
    """The message or a part: a multipart while its parts are read, else a leaf, whose boundary is empty.

    `fields` are as written, unfolded. `path` counts from one at each level, such as `1.2`; that of the message is
    empty. The header begins at `begin` and the body at `body`; `end` is known once the entity is complete. `is_cut`:
    the header was too long, and there is no body.
    """

    begin: int
    body: int
    fields: list[tuple[str, str]]
    is_cut: bool
    path: str = ""
    content_type: str = "text/plain"
    parameters: dict[str, str] = msgspec.field(default_factory=dict)
    boundary: bytes = b""
    children: int = 0
    end: int = 0

    def first(self, name: str) -> str:
        """The value of the first field of this name, which is given in lower case; empty when there is none."""
        return next((value for given, value in self.fields if given.lower() == name), "")


class Walker:
    """The state of the one pass. `root` is the message itself; `leaves` may be called once.

    `entities` are those found so far, multiparts too, in the order of their headers. `truncated`: something exceeded a
    bound so far.
    """

    def __init__(self, content: bytes, bounds: Bounds) -> None:
        self._content = content
        self._bounds = bounds
        self._delimiter_lines = 0
        self._open: list[Entity] = []
        self.entities: list[Entity] = []
        self.truncated = False
        self.root = self._enter(0)

    def leaves(self) -> Iterator[Entity]:
        """The leaves in order. A multipart without a part is one."""
        for number, leaf in enumerate(self._leaves()):
            if number >= self._bounds.parts:
                self.truncated = True
                return
            yield leaf

    def _leaves(self) -> Iterator[Entity]:
        at = self.root.body
        while self._open and (line := self._next_delimiter(at, len(self._content))) is not None:
            begin, end, level, is_close = line
            # The line end before a delimiter belongs to it (RFC 2046 section 5.1.1).
            has_cr = self._content[begin - 1 : begin] == b"\r"
            yield from self._leave(level + (not is_close), begin - has_cr)
            at = end + 1
            if not is_close:
                at = self._enter(at).body
                self._open[level].children += 1
        yield from self._leave(0, len(self._content))

    def _enter(self, at: int) -> Entity:
        """Read the header that begins here, and open what it announces."""
        parent = self._open[-1] if self._open else None
        bounds = self._bounds
        if parent:
            entity = self._header(at, max_octets=bounds.part_header_octets, max_fields=bounds.part_fields)
        else:
            entity = self._header(at, max_octets=bounds.header_octets, max_fields=bounds.fields)
        if parent:
            entity.path = f"{parent.path}.{parent.children + 1}".lstrip(".")
        kind, entity.parameters = read_parameters(entity.first("content-type"))
        if _TYPE.fullmatch(kind):
            entity.content_type = kind
        elif parent and parent.content_type == "multipart/digest":
            entity.content_type = "message/rfc822"  # RFC 2046 section 5.1.5
        boundary = entity.parameters.get("boundary", "").rstrip().encode("utf-8", "replace")
        is_multipart = (entity.content_type if self._bounds.strict_types else kind).startswith("multipart/")
        if is_multipart and 0 < len(boundary) <= BOUNDARY_OCTETS and not entity.is_cut:
            if len(self._open) < self._bounds.depth:
                entity.boundary = boundary
            else:
                self.truncated = True
        self._open.append(entity)
        self.entities.append(entity)
        return entity

    def _leave(self, level: int, end: int) -> Iterator[Entity]:
        """Close everything above a level; `end` is where its last line ended or the message did."""
        while len(self._open) > level:
            entity = self._open.pop()
            entity.end = end
            if not entity.children:
                entity.body = end if entity.is_cut else min(entity.body, end)
                yield entity

    def _next_delimiter(self, at: int, end: int) -> tuple[int, int, int, bool] | None:
        """The LF before the next delimiter line, the end of the line, its level, and whether it closes the multipart.

        Of equal boundaries, the outermost counts.
        """
        levels = {entity.boundary: level for level, entity in reversed([*enumerate(self._open)]) if entity.boundary}
        at = max(at - 1, 0)
        while (found := self._content.find(b"\n--", at, end)) >= 0:
            self._delimiter_lines += 1
            if self._delimiter_lines > self._bounds.delimiter_lines:
                self.truncated = True
                return None
            at = self._content.find(b"\n", found + 1)
            at = len(self._content) if at < 0 else at
            # A longer line is not a delimiter, and copying all of it would not be free.
            line = self._content[found + 3 : min(at, found + 2 * BOUNDARY_OCTETS)].rstrip(b" \t\r")
            if line in levels:
                return found, at, levels[line], False
            if line.endswith(b"--") and line[:-2] in levels:
                return found, at, levels[line[:-2]], True
        return None

    def _header(self, at: int, *, max_octets: int, max_fields: int) -> Entity:
        """The header ends at an empty line, or where the next part begins."""
        limit = min(at + max_octets, len(self._content))
        empty = _EMPTY_LINE.search(self._content, at, limit)
        end, body = empty.span() if empty else (limit, limit)
        delimiter = self._next_delimiter(at, end) if self._open else None
        if delimiter is not None:
            end = body = delimiter[0] + 1
        is_cut = empty is None and delimiter is None and limit < len(self._content)
        unfolded = _FOLD.sub("", self._content[at:end].decode("utf-8", "replace"))
        lines = unfolded.rstrip("\r\n").split("\n", max_fields)
        if is_cut or len(lines) > max_fields:
            self.truncated = True
        found = filter(None, map(_FIELD.fullmatch, lines[:max_fields]))
        return Entity(at, body, [(match[1], match[2].strip()) for match in found], is_cut)
