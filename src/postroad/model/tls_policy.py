"""The TLS policy of a connection to a mail host: chosen by routing, enforced by the connection."""

from enum import StrEnum
from typing import Final

import msgspec

# RFC 7672 section 3.1: the record names an authority of the chain, or the server's own key. Digests have their lengths.
DANE_TA: Final = 2
DANE_EE: Final = 3
USAGES: Final = frozenset({DANE_TA, DANE_EE})
SELECTORS: Final = frozenset({0, 1})
DIGEST_BYTES: Final = {1: 32, 2: 64}


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


class TlsPolicy(msgspec.Struct, frozen=True):
    """The policy for one host."""

    mode: Mode = Mode.OPPORTUNISTIC
    names: tuple[str, ...] = ()
    tlsa: tuple[Tlsa, ...] = ()
    reason: str = ""  # where a strict policy comes from, for logs: `MTA-STS of example.org`


OPPORTUNISTIC = TlsPolicy()
