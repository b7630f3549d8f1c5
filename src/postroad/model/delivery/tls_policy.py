"""The TLS policy of a connection to a mail host: chosen by routing, enforced by the connection."""

import hashlib
import itertools
from collections.abc import Iterable
from enum import StrEnum
from typing import Final

import msgspec

# RFC 7672 section 3.1: the record names an authority of the chain, or the server's own key. Digests have their lengths.
DANE_TA: Final = 2
DANE_EE: Final = 3
USAGES: Final = frozenset({DANE_TA, DANE_EE})
SELECTORS: Final = frozenset({0, 1})
SHA256: Final = 1
DIGEST_BYTES: Final = {SHA256: 32, 2: 64}
# What is kept of a record's data: that of the longest digest.
MAX_DATA_BYTES: Final = 64
# A host that lists every issuer of its authority, for two kinds of keys, has a dozen. A set that is cut too short would
# not match the certificate.
MAX_TLSA: Final = 16


class Mode(StrEnum):
    """From the weakest to the strictest."""

    PLAIN = "plain"  # never STARTTLS
    # As VERIFIED, but when that fails the failure is only noted, and the session is OPPORTUNISTIC (RFC 8461 section 5).
    TESTING = "testing"
    OPPORTUNISTIC = "opportunistic"  # STARTTLS when offered, any certificate; plain text when it fails (RFC 7435)
    REQUIRED = "required"  # STARTTLS or no delivery, any certificate
    VERIFIED = "verified"  # STARTTLS with a certificate of a known authority for one of `names` (RFC 8461)
    DANE = "dane"  # STARTTLS with a certificate that one of `tlsa` matches (RFC 7672)


class Tlsa(msgspec.Struct, frozen=True):
    """A TLSA record (RFC 6698 section 2.1)."""

    usage: int
    selector: int
    matching_type: int
    data: bytes

    @property
    def is_usable(self) -> bool:
        """RFC 7672 section 3.1.3: the usages of public authorities are not for SMTP."""
        if self.usage not in USAGES or self.selector not in SELECTORS or not self.data:
            return False
        return self.matching_type == 0 or DIGEST_BYTES.get(self.matching_type) == len(self.data)

    @property
    def shortened(self) -> "Tlsa":
        """The record without long data: a digest of a certificate or key, which the same one matches and no other.

        An unusable record keeps none, and so is never usable.
        """
        if len(self.data) <= MAX_DATA_BYTES:
            return self
        if not self.is_usable:
            return Tlsa(self.usage, self.selector, self.matching_type, b"")
        return Tlsa(self.usage, self.selector, SHA256, hashlib.sha256(self.data).digest())


def limited(records: Iterable[Tlsa]) -> tuple[Tlsa, ...]:
    """What is cached of a set of records: a zone could fill the memory with them.

    Fewer records match fewer certificates. A set that is not empty stays so, and each kept record stays as usable as it
    was, so nothing that DANE protects loses its protection.
    """
    return tuple(record.shortened for record in itertools.islice(records, MAX_TLSA))


class TlsPolicy(msgspec.Struct, frozen=True):
    """The policy for one host."""

    mode: Mode = Mode.OPPORTUNISTIC
    names: tuple[str, ...] = ()
    tlsa: tuple[Tlsa, ...] = ()
    reason: str = ""  # where a strict policy comes from, for logs: `MTA-STS of example.org`


OPPORTUNISTIC = TlsPolicy()
