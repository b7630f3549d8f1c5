"""Return paths: an envelope sender that identifies one recipient of one message and cannot be forged (signed VERP).

`bounces+TOKEN@DOMAIN`, where the token is the 28 digits of the message id, four of the recipient's id, and a signature
of 22 digits: 62 of the 64 octets of a local part (RFC 5321 section 4.5.3.1.1). The four are the end of the id's time,
in which the recipients of a message are one microsecond apart. Hexadecimal, because hosts may change the case of
letters. 88 bits cannot be guessed, and a wrong guess costs one hash and no query. The signature is keyed BLAKE2b (RFC
7693 section 2.9): as strong as HMAC-SHA256 in a third of its time, which every recipient pays.

A recipient sees its own token and no other, so a report can only be about the recipient whose token it carries.
"""

import hashlib
import hmac
import re
from collections.abc import Iterable
from typing import Final

import msgspec

from postroad.keys import installation_keys
from postroad.model.units import identifiers

LOCAL_PREFIX: Final = "bounces+"
SIGNATURE_BYTES: Final = 11
# The last digits of the time in a recipient's id.
_RECIPIENT_DIGITS: Final = slice(-18, -14)
_ADDRESS: Final = re.compile(r"bounces\+([0-9a-f]{54})@[^@]+", re.ASCII | re.IGNORECASE)


class ReturnPath(msgspec.Struct, frozen=True):
    """What a token names: a message, and four digits of a recipient's id."""

    message_id: str
    digits: str

    def recipient(self, recipient_ids: Iterable[str]) -> str | None:
        """The recipient that the token means, among those of the message; None unless it can only be one."""
        found = [each for each in recipient_ids if self.digits == each[_RECIPIENT_DIGITS]]
        return found[0] if len(found) == 1 else None


def address(key: bytes, *, message_id: str, recipient_id: str, domain: str) -> str:
    """The envelope sender for a recipient; cheap enough for every one."""
    named = message_id[3:] + recipient_id[_RECIPIENT_DIGITS]
    return f"{LOCAL_PREFIX}{named}{_signature(key, named)}@{domain}"


def domain_for(sender_key: str, *, chosen: str, configured: str) -> str:
    """The domain of a message's return path: the operator's, that chosen for the message, or the sender's own."""
    return configured or chosen or sender_key.rpartition("@")[2]


def named_by(keys: installation_keys.Keys, address: str) -> ReturnPath | None:
    """What the address names, signed with the current key or one that it replaced."""
    found = (read(each.return_path, address) for each in (keys, *keys.previous))
    return next((named for named in found if named is not None), None)


def read(key: bytes, address: str) -> ReturnPath | None:
    """What the address names, or None when the token is invalid."""
    match = _ADDRESS.fullmatch(address)
    if match is None:
        return None
    text = match[1].lower()
    is_valid = hmac.compare_digest(text[32:], _signature(key, text[:32]))
    return ReturnPath(identifiers.MESSAGE + text[:28], text[28:32]) if is_valid else None


def _signature(key: bytes, named: str) -> str:
    return hashlib.blake2b(named.encode(), key=key, digest_size=SIGNATURE_BYTES).hexdigest()
