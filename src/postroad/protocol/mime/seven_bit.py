"""8-bit messages in a form that every mail host can transport (RFC 2045 section 6, RFC 6152 section 3).

A host without 8BITMIME may not be sent 8-bit content, and whoever encodes it after it was signed breaks the signature.
So it is encoded before: the body of each part that has 8-bit octets, as quoted-printable or base64. Multiparts and
nested messages are entered and stated to be `7bit`. A message without a Content-Type gets one: UTF-8, or ISO 8859-1 if
it is not UTF-8, in which every octet is a character. UTF-8 in the header of a part is encoded as in that of a message.
All that is 7-bit stays octet for octet.

The message becomes 7-bit as a whole or stays as it is. It stays if the 8-bit octets are within a `multipart/signed`,
where any change breaks the signature, between the parts of a multipart, or where the structure is malformed, over its
bounds, or delimited by what an encoded line could become. The time is linear in the size, for each level of nested
messages.
"""

import re
from typing import Final

from postroad.protocol.mime import address, address_lists, header_fields, message_parser, part_walker, transfer_encoding

# Far more than mail has; the bounds of depth keep a hostile message from being copied once for each level.
BOUNDS: Final = part_walker.Bounds(
    header_octets=2 * message_parser.HEADER_OCTETS,  # fields were added to it
    part_header_octets=16 * 1024,
    fields=2 * message_parser.MAX_FIELDS,
    part_fields=100,
    depth=10,
    parts=500,
    delimiter_lines=message_parser.MAX_DELIMITER_LINES,
    strict_types=True,
)
MAX_NESTED_MESSAGES: Final = 5
# Of all parts together: encoding their words is slow.
UTF8_HEADER_OCTETS: Final = message_parser.UTF8_HEADER_OCTETS

_TYPE: Final = "content-type"
_ENCODING: Final = "content-transfer-encoding"
_NOT_ENCODED: Final = frozenset({"", "7bit", "8bit", "binary"})
# What quoted-printable can write: escaped octets, and the sign of a cut at the end. The boundaries of Python's library,
# such as `===============73==`, are no such text.
_QUOTED_PRINTABLE: Final = re.compile(rb"(?:[^=]|=[0-9A-F]{2})*+=?", re.DOTALL)
# RFC 2045 section 6.4 and RFC 2046 section 5.2: these may not be encoded.
_COMPOSITE: Final = ("multipart/", "message/")
_ENCODING_FIELD: Final = re.compile(
    rb"^content-transfer-encoding[ \t]*+:[^\n]*+\n(?:[ \t][^\n]*+\n)*+", re.IGNORECASE | re.MULTILINE
)


class _UnsuitableError(Exception):
    """The message stays as it is."""


def encode(message: bytes) -> bytes:
    """A message, whose lines end in CRLF, with a body of 7 bits; or the same message, where that cannot be done."""
    try:
        return _Encoder().encode(message)
    except (_UnsuitableError, message_parser.MessageError):
        return message


class _Encoder:
    """The state of one message with those nested in it."""

    def __init__(self) -> None:
        self._utf8_header_octets = 0
        self._level = 0

    def encode(self, message: bytes) -> bytes:
        walker = part_walker.Walker(message, BOUNDS)
        for _ in walker.leaves():
            pass
        if walker.truncated or any(_may_be_written(entity.boundary) for entity in walker.entities):
            raise _UnsuitableError
        pieces: list[bytes] = []
        at = 0
        for entity in walker.entities:
            head, body = self._entity(message, entity)
            pieces += (message[at : entity.begin], head)
            at = entity.body
            if not entity.children:
                pieces.append(body)
                at = entity.end
        pieces.append(message[at:])
        # The first two are the header, which may be UTF-8.
        if not all(map(bytes.isascii, pieces[2:])):
            raise _UnsuitableError
        return b"".join(pieces)

    def _entity(self, message: bytes, entity: part_walker.Entity) -> tuple[bytes, bytes]:
        """The header and the body of the message or a part; that of a multipart is not used."""
        head, body = message[entity.begin : entity.body], message[entity.body : entity.end]
        if not body.isascii():
            _refuse_unsuitable(entity)
            encoding, encoded = ("7bit", b"") if entity.children else self._body(entity, body)
            head = _described(head, entity, encoding, body)
            body = encoded
        is_part = self._level or entity.path
        return (self._header(head) if is_part and not head.isascii() else head), body

    def _body(self, entity: part_walker.Entity, body: bytes) -> tuple[str, bytes]:
        if entity.content_type == "message/rfc822" and self._level < MAX_NESTED_MESSAGES:
            self._level += 1
            body = self.encode(body)
            self._level -= 1
            return "7bit", body
        if entity.content_type.startswith(_COMPOSITE):
            raise _UnsuitableError
        is_text = entity.content_type.startswith("text/")
        encoding, encoded = transfer_encoding.encode_octets(body) if is_text else transfer_encoding.encode_file(body)
        is_whole_line = not body.endswith(b"\r\n") or encoded.endswith(b"\r\n")
        return encoding, encoded if is_whole_line else encoded + b"\r\n"

    def _header(self, head: bytes) -> bytes:
        self._utf8_header_octets += len(head)
        if self._utf8_header_octets > UTF8_HEADER_OCTETS:
            raise _UnsuitableError
        return message_parser.rewrite(message_parser.read(head), drop=frozenset(), add=(), allow_utf8=False)


def _may_be_written(boundary: bytes) -> bool:
    """Whether encoding could make a delimiter of a line that was none."""
    return b"=" in boundary and _QUOTED_PRINTABLE.fullmatch(boundary) is not None


def _refuse_unsuitable(entity: part_walker.Entity) -> None:
    """Refuse a header that readers understand differently, or that this module must not change."""
    names = [name.lower() for name, _ in entity.fields]
    declared = entity.first(_TYPE).lower()
    if (
        names.count(_ENCODING) > 1
        or names.count(_TYPE) != bool(declared)
        or (declared and not declared.startswith(entity.content_type))
        or entity.first(_ENCODING).lower() not in _NOT_ENCODED
        or entity.content_type == "multipart/signed"  # RFC 1847 section 2.1
    ):
        raise _UnsuitableError


def _described(head: bytes, entity: part_walker.Entity, encoding: str, body: bytes) -> bytes:
    """The header, saying what the body was and how it is encoded."""
    if encoding == "7bit" and entity.first(_ENCODING).lower() in ("", "7bit"):
        return head
    found = _ENCODING_FIELD.search(head)
    if found is not None:
        head = head[: found.start()] + head[found.end() :]
    added = [f"Content-Transfer-Encoding: {encoding}\r\n"]
    if not entity.first(_TYPE) and encoding != "7bit":
        added.insert(0, f"Content-Type: text/plain; charset={_charset(body)}\r\n")
    if not (entity.path or entity.first("mime-version")):
        added.insert(0, "MIME-Version: 1.0\r\n")
    # The header ends in an empty line, or there would be no body.
    return b"%b%b\r\n" % (head.removesuffix(b"\r\n"), "".join(added).encode())


def _charset(body: bytes) -> str:
    try:
        body.decode()
    except UnicodeDecodeError:
        return "iso-8859-1"
    return "utf-8"


# A message with internationalized recipients in its header, for a host without SMTPUTF8 (RFC 6531).
#
# Such an address in To or Cc becomes the name of an empty group, as RFC 6857 does it: readers see the address, and
# replies leave it out. It keeps its neighbours from nothing. An address of the sender has no such form, because readers
# could not tell any more who wrote the message or where a reply goes.

RECIPIENT_FIELDS: Final = frozenset({"to", "cc"})


def ascii_header(content: bytes) -> bytes | None:
    """The message with an ASCII header; None when something else in it is not ASCII."""
    head, end, body = content.partition(b"\r\n\r\n")
    try:
        header = message_parser.read(head + end, has_only_crlf=True)
        fields = [field.raw if field.raw.isascii() else _downgraded(field) for field in header.fields]
    except (message_parser.MessageError, header_fields.HeaderError, address.AddressError):
        return None
    return None if None in fields else b"".join([*filter(None, fields), b"\r\n", header.body, body])


def _downgraded(field: message_parser.Field) -> bytes | None:
    if field.key not in RECIPIENT_FIELDS:
        return None
    pieces: list[header_fields.Piece] = []
    mailboxes = address_lists.parse_list(field.value)
    last = len(mailboxes) - 1
    for index, mailbox in enumerate(mailboxes):
        end = "" if index == last else ","
        pieces += _group(mailbox, end=end) if mailbox.needs_smtputf8 else header_fields.mailbox_pieces(mailbox, end=end)
    return header_fields.fold(field.name, pieces).encode("ascii")


def _group(mailbox: address.Mailbox, *, end: str) -> list[header_fields.Piece]:
    name = mailbox.address if mailbox.display_name is None else f"{mailbox.display_name} {mailbox.address}"
    return [header_fields.Piece(" ", name, encode=True), header_fields.Piece(" ", f":;{end}")]
