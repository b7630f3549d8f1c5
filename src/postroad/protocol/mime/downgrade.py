"""A message with internationalized recipients in its header, for a host without SMTPUTF8 (RFC 6531).

Such an address in To or Cc becomes the name of an empty group, as RFC 6857 does it: readers see the address, and
replies leave it out. It keeps its neighbours from nothing. An address of the sender has no such form, because readers
could not tell any more who wrote the message or where a reply goes.
"""

from typing import Final

from postroad.protocol import address
from postroad.protocol.mime import address_lists, header_fields, header_text, message_parser

RECIPIENT_FIELDS: Final = frozenset({"to", "cc"})


def ascii_header(content: bytes) -> bytes | None:
    """The message with an ASCII header; None when something else in it is not ASCII."""
    head, end, body = content.partition(b"\r\n\r\n")
    try:
        header = message_parser.read(head + end, has_only_crlf=True)
        fields = [field.raw if field.raw.isascii() else _downgraded(field) for field in header.fields]
    except (message_parser.MessageError, header_text.HeaderError, address.AddressError):
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
