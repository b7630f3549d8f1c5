"""Parser of complete messages: the header is parsed and changed where necessary, the body is left alone.

Input must follow RFC 5322 section 2.1: lines end in CRLF and have at most 998 octets, no NUL; a header of fields up to
the first empty line, in ASCII or UTF-8 (RFC 6532). The obsolete syntax of section 4 is refused where readers disagree
about it: white space before a colon, lines of white space only, control characters. A field that is neither dropped nor
non-ASCII is kept byte for byte, so that existing signatures stay valid; only From and Sender are rewritten where their
form is not the plain one. All work is linear in the size; the body is only searched, never parsed.
"""

import hashlib
import re
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from postroad.protocol.mime import address, address_lists, header_fields
from postroad.protocol.smtp import server_input

# Mail that went a long way has some ten thousand octets in some dozens of fields.
HEADER_OCTETS: Final = 256 * 1024
# What is not ASCII is encoded word by word, which takes a thousand times longer than copying: here the bound is closer.
UTF8_HEADER_OCTETS: Final = 32 * 1024
MAX_FIELDS: Final = 1_000
# Lines of a body that may be boundaries: some tenths of a second's work, and more than a long patch has. Further
# boundaries are treated as text.
MAX_DELIMITER_LINES: Final = 100_000
LINE_OCTETS: Final = header_fields.MAX_LINE_OCTETS

ADDRESS_FIELDS: Final = frozenset(
    "from sender reply-to to cc bcc resent-from resent-sender resent-to resent-cc resent-bcc".split()
)
# The sender: readers must see the address that was checked.
IDENTITY_FIELDS: Final = frozenset({"from", "sender"})
# Structured fields: only text between the delimiters of their syntax can be encoded.
STRUCTURED_FIELDS: Final = frozenset(
    "date message-id in-reply-to references return-path received mime-version dkim-signature authentication-results "
    "resent-date resent-message-id".split()
)
STRUCTURED_PREFIXES: Final = ("arc-", "list-")
PARAMETER_PREFIX: Final = "content-"
FREE_TEXT: Final = "content-description"
# Fields that differ when the same message is sent again: a client regenerates them, or hosts on the way write them. A
# signature covers the date, so it is another one each time.
RENEWED_FIELDS: Final = frozenset(
    "date message-id received idempotency-key return-path delivered-to received-spf authentication-results "
    "dkim-signature arc-seal arc-message-signature arc-authentication-results".split()
)

_END: Final = b"\r\n"
_FIELD: Final = re.compile(rb"^(([!-9;-~]++):[^\n]*+\n(?:[ \t]++[^\r\n][^\n]*+\n)*+)", re.MULTILINE)
_CONTROLS: Final = bytes(octet for octet in (*range(32), 127) if octet not in b"\t\r\n")
_CONTROL: Final = re.compile(rb"[%b]" % re.escape(_CONTROLS))
_BARE: Final = re.compile(rb"\r(?!\n)|(?<!\r)\n")
_MULTIPART: Final = re.compile(rb"^Content-Type:\s*multipart/[^\n]*+(?:\n[ \t][^\n]*+)*+", re.IGNORECASE | re.MULTILINE)
# RFC 2046 section 5.1.1 allows 70 characters; some clients take more.
_BOUNDARY: Final = re.compile(rb';\s*boundary\s*=\s*(?:"([^"\r\n]{1,200})"|([^\s;"]{1,200}))', re.IGNORECASE)


class MessageError(ValueError):
    """The octets are not a message. The sentence says where and why, and is safe to show."""


class Field(msgspec.Struct, frozen=True):
    """A header field. `key` is its name in lower case; `raw` is all of its lines with their ends."""

    name: str
    key: str
    raw: bytes

    @property
    def value(self) -> str:
        """What follows the colon, unfolded, without the white space around it. Encoded words are not decoded."""
        return self.raw[len(self.name) + 1 :].decode().replace("\r\n", "").strip(" \t")


class Message(msgspec.Struct, frozen=True):
    fields: tuple[Field, ...]
    body: bytes

    def all(self, name: str) -> list[str]:
        key = name.lower()
        return [field.value for field in self.fields if field.key == key]


def read(content: bytes, *, has_only_crlf: bool = False) -> Message:
    """The message in the octets, or a MessageError. `has_only_crlf`: bare CR and LF were ruled out before."""
    head, body = _split(content)
    _check_lines(content, has_only_crlf=has_only_crlf)
    _check_characters(head)
    found = _FIELD.findall(head)
    if len(found) > MAX_FIELDS:
        raise MessageError(f"the header has more than {MAX_FIELDS} fields")
    if sum([len(raw) for raw, _ in found]) != len(head):
        raise _not_a_field(head)
    fields = [Field(name := octets.decode(), name.lower(), raw) for raw, octets in found]
    return Message(tuple(fields), body)


def rewrite(
    message: Message, *, drop: frozenset[str], add: Sequence[tuple[str, str]], allow_utf8: bool = True
) -> bytes:
    """The message without the fields to drop, which are named in lower case, and with others in front.

    Fields that are not ASCII are encoded where their syntax has a place for it; one that has none is a MessageError,
    unless UTF-8 is allowed. Raises HeaderError when what is to be added may not stand in a header.
    """
    added = [_added(name, value) for name, value in add]
    kept = [
        field.raw
        if field.raw.isascii() and field.key not in IDENTITY_FIELDS
        else _written(field, allow_utf8=allow_utf8)
        for field in message.fields
        if field.key not in drop
    ]
    return b"".join([*added, *kept, _END, message.body])


def fingerprint(message: Message) -> bytes:
    """A digest that stays the same when a client writes the same message again.

    It omits renewed fields and replaces the boundaries of multiparts by numbers. A number is written between NULs,
    which no message contains, so that it cannot be confused with content.
    """
    boundaries: dict[bytes, bytes] = {}
    digest = hashlib.sha256()
    for field in message.fields:
        if field.key not in RENEWED_FIELDS:
            digest.update(_numbered(field.raw, boundaries) if field.key == "content-type" else field.raw)
    for piece in _body_pieces(_END + message.body, boundaries):
        digest.update(piece)
    return digest.digest()


def _split(content: bytes) -> tuple[bytes, bytes]:
    """The header with its line ends, and the body, which may be missing."""
    if content.startswith(_END):
        return b"", content[len(_END) :]
    end = content.find(_END + _END, 0, HEADER_OCTETS + 2 * len(_END))
    if end >= 0:
        return content[: end + len(_END)], content[end + 2 * len(_END) :]
    if len(content) > HEADER_OCTETS:
        raise MessageError(f"the header is longer than {HEADER_OCTETS} octets; end it with an empty line")
    return content, b""


def _check_lines(content: bytes, *, has_only_crlf: bool) -> None:
    nul = content.find(b"\0")
    if nul >= 0:
        raise MessageError(f"line {_line_number(content, nul)} contains a NUL, which is not allowed in mail")
    if not has_only_crlf and server_input.has_bare_line_ends(content):
        bare = _BARE.search(content)
        raise MessageError(f"line {_line_number(content, bare.start() if bare else 0)} has a bare CR or LF")
    at, longest = 0, LINE_OCTETS + len(_END)
    # From the beginning of a line to the last line end within reach: a few steps, however many lines there are.
    while len(content) - at > LINE_OCTETS:
        end = content.rfind(b"\n", at, at + longest)
        if end < 0:
            raise MessageError(
                f"line {_line_number(content, at)} is longer than {LINE_OCTETS} octets; "
                "fold it in the header, encode it as quoted-printable or base64 in the body"
            )
        at = end + 1


def _check_characters(head: bytes) -> None:
    if len(head.translate(None, _CONTROLS)) != len(head):
        found = _CONTROL.search(head)
        number = _line_number(head, found.start() if found else 0)
        raise MessageError(f"line {number} has a control character, which is not allowed in a header")
    if not head.isascii():
        if len(head) > UTF8_HEADER_OCTETS:
            raise MessageError(f"a header that is not ASCII may have {UTF8_HEADER_OCTETS} octets; encode it (RFC 2047)")
        try:
            head.decode()
        except UnicodeDecodeError as error:
            number = _line_number(head, error.start)
            raise MessageError(f"line {number} of the header is neither ASCII nor UTF-8") from None


def _not_a_field(head: bytes) -> MessageError:
    """What is wrong with the first line that neither begins nor continues a field."""
    at = 0
    while (found := _FIELD.match(head, at)) is not None:
        at = found.end()
    line, end, _ = head[at:].partition(_END)
    return MessageError(f"line {_line_number(head, at)} {_why_not_a_field(line, is_whole=bool(end), is_first=at == 0)}")


def _why_not_a_field(line: bytes, *, is_whole: bool, is_first: bool) -> str:
    name, colon, _ = line.partition(b":")
    if not is_whole:
        return "is the last of the header and does not end in CRLF"
    if line and not line.strip(b" \t"):
        return "contains only white space; end the header with an empty line, and continue a field with text"
    if line[:1] in {b" ", b"\t"}:
        return "begins with white space, but there is no field to continue"
    if is_first and line.startswith(b"From "):
        return "is not a header field: 'From ' without a colon is the mbox format; remove the line"
    if not colon:
        return "is not a header field: it has no colon; put an empty line between header and body"
    if name.rstrip(b" \t") != name:
        return "has white space before its colon"
    return "is not a header field: a name consists of visible ASCII characters, followed by a colon"


def _line_number(content: bytes, at: int) -> int:
    return content.count(b"\n", 0, at) + 1


def _added(name: str, value: str) -> bytes:
    header_fields.check_name(name)
    return header_fields.unstructured(name, value).encode()


def _written(field: Field, *, allow_utf8: bool) -> bytes:
    is_ascii = field.raw.isascii()
    if is_ascii and address_lists.is_plain(field.value):
        return field.raw
    try:
        written = _addresses(field) or (field.raw if is_ascii else _encoded(field))
    except header_fields.HeaderError as problem:
        raise MessageError(f"{field.name}: {problem}") from None
    if not (allow_utf8 or written.isascii()):
        raise MessageError(
            f"{field.name}: is not ASCII where it cannot be encoded; write it in ASCII, or send with SMTPUTF8"
        )
    return written


def _addresses(field: Field) -> bytes | None:
    """A rewritten field of addresses; None if it is not one, or cannot be parsed."""
    if field.key not in ADDRESS_FIELDS:
        return None
    try:
        mailboxes = address_lists.parse_list(field.value)
    except address.AddressError:
        return None
    return header_fields.addresses(field.name, mailboxes).encode() if mailboxes else None


def _encoded(field: Field) -> bytes:
    """The field in ASCII, as far as its syntax has a place for encoded words."""
    encode = header_fields.reencoded
    if field.key.startswith(PARAMETER_PREFIX) and field.key != FREE_TEXT:
        encode = header_fields.parameters
    elif field.key in ADDRESS_FIELDS | STRUCTURED_FIELDS or field.key.startswith(STRUCTURED_PREFIXES):
        encode = header_fields.structured
    return encode(field.name, field.value).encode()


def _numbered(head: bytes, boundaries: dict[bytes, bytes]) -> bytes:
    """The header of a part, with its boundary replaced by a number; the boundary is added to `boundaries`."""
    multipart = _MULTIPART.search(head)
    found = _BOUNDARY.search(head, multipart.start(), multipart.end()) if multipart else None
    if found is None:
        return head
    begin, end = found.span(found.lastindex or 0)
    number = boundaries.setdefault(head[begin:end], b"\0%d\0" % len(boundaries))
    return head[:begin] + number + head[end:]


def _body_pieces(body: bytes, boundaries: dict[bytes, bytes]) -> Iterator[bytes]:
    """The body, which begins with a line end, with boundaries replaced by numbers (RFC 2046 section 5.1.1)."""
    done = at = 0
    for _ in range(MAX_DELIMITER_LINES if boundaries else 0):
        found = body.find(b"\r\n--", at)
        if found < 0:
            break
        begin = found + len(b"\r\n--")
        at = body.find(_END, begin)
        if at < 0:
            at = len(body)
        line = body[begin:at].rstrip(b" \t")
        opens = line in boundaries
        boundary = line if opens else line.removesuffix(b"--")
        if boundary not in boundaries:
            continue
        yield body[done:begin] + boundaries[boundary]
        done = begin + len(boundary)
        # Without a further empty line no part has a header, so no boundary is left to find.
        end = body.find(_END + _END, at) if opens else at
        if end < 0:
            break
        if opens:
            yield body[done:at] + _numbered(body[at : end + len(_END)], boundaries)
            done, at = end + len(_END), end
    yield body[done:]
