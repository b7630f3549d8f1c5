"""The commands of a transaction as bytes, or the result that says why they are not sent.

A message that a server has announced it cannot accept is refused here (RFC 1870 SIZE, RFC 6531 SMTPUTF8, RFC 6152
8BITMIME), and so is an address that could end its command and inject another.

Messages are 7-bit when they are accepted, except those that must not be changed (protocol/mime/seven_bit.py): encoding
them here would break their signatures.
"""

import re
from collections.abc import Mapping
from typing import Final

from postroad.protocol.smtp import values

DATA: Final = b"DATA\r\n"
FINAL_DOT: Final = b".\r\n"
QUIT: Final = b"QUIT\r\n"
RSET: Final = b"RSET\r\n"
STARTTLS: Final = b"STARTTLS\r\n"

# RFC 5321 section 4.5.3.1: a local part of 64 octets, an @, and a domain of 255.
_MAX_ADDRESS_OCTETS: Final = 320
# A local part that is quoted may hold blanks and angle brackets; nothing may hold a control character.
_PLAIN: Final = r'[^\x00-\x20\x7f<>"\\]+'
_QUOTED: Final = r'"(?:[^\x00-\x1f\x7f"\\]|\\[^\x00-\x1f\x7f])*"'
_ADDRESS: Final = re.compile(rf"(?:{_PLAIN}|{_QUOTED})@{_PLAIN}")


def hello(verb: str, name: str) -> bytes:
    """EHLO or HELO."""
    return f"{verb} {name}\r\n".encode("ascii")


def mail(transaction: values.MailTransaction, extensions: Mapping[str, str]) -> bytes | values.RecipientResult:
    """MAIL with the parameters that the server's extensions allow, or why this message cannot be sent there."""
    size = transaction.size
    sender = _address(transaction.sender, is_utf8=transaction.needs_smtputf8) if transaction.sender else b""
    mismatch = _mismatch(transaction, extensions, size)
    if mismatch is not None:
        return mismatch
    if sender is None:
        detail = "the sender's address cannot be sent by SMTP"
        return values.RecipientResult(values.Stage.MAIL, cause=values.Cause.UNSENDABLE_ADDRESS, detail=detail)
    command = b"MAIL FROM:<%b> SIZE=%d" % (sender, size) if "SIZE" in extensions else b"MAIL FROM:<%b>" % sender
    if transaction.is_8bit and "8BITMIME" in extensions:  # or it has SMTPUTF8, which includes it (RFC 6531 section 3.1)
        command += b" BODY=8BITMIME"
    return command + (b" SMTPUTF8\r\n" if transaction.needs_smtputf8 else b"\r\n")


def recipient(address: str, *, is_utf8: bool) -> bytes | values.RecipientResult:
    """RCPT, or why it cannot be sent for this recipient."""
    encoded = _address(address, is_utf8=is_utf8)
    if encoded is None:
        detail = "the recipient's address cannot be sent by SMTP"
        return values.RecipientResult(values.Stage.RECIPIENT, cause=values.Cause.UNSENDABLE_ADDRESS, detail=detail)
    return b"RCPT TO:<%b>\r\n" % encoded


def _mismatch(
    transaction: values.MailTransaction, extensions: Mapping[str, str], size: int
) -> values.RecipientResult | None:
    limit = extensions.get("SIZE", "")
    # RFC 1870 section 4: zero, or no number, is no fixed limit.
    if limit and limit.isdecimal() and 0 < int(limit) < size:
        detail = f"the destination takes messages of at most {limit} octets, and this one has {size}"
        return values.RecipientResult(values.Stage.MAIL, cause=values.Cause.MESSAGE_TOO_LARGE, detail=detail)
    if transaction.needs_smtputf8 and "SMTPUTF8" not in extensions:
        detail = "the message has an internationalized address, and the destination does not offer SMTPUTF8"
        return values.RecipientResult(values.Stage.MAIL, cause=values.Cause.EXTENSION_MISSING, detail=detail)
    if transaction.is_8bit and not transaction.needs_smtputf8 and "8BITMIME" not in extensions:
        detail = "the message has 8-bit content that must not be changed, and the destination does not offer 8BITMIME"
        return values.RecipientResult(values.Stage.MAIL, cause=values.Cause.EXTENSION_MISSING, detail=detail)
    return None


def _address(address: str, *, is_utf8: bool) -> bytes | None:
    if not (address.isascii() or is_utf8) or _ADDRESS.fullmatch(address) is None:
        return None
    try:
        encoded = address.encode()
    except UnicodeEncodeError:  # an unpaired surrogate
        return None
    return encoded if len(encoded) <= _MAX_ADDRESS_OCTETS else None
