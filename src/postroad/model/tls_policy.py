"""How the connection to a destination has to be secured: data, decided by routing and obeyed by the connection."""

from enum import StrEnum

import msgspec


class Mode(StrEnum):
    """From the weakest to the strictest."""

    PLAIN = "plain"  # never STARTTLS
    OPPORTUNISTIC = "opportunistic"  # STARTTLS when offered, any certificate; plain text when it fails (RFC 7435)
    REQUIRED = "required"  # STARTTLS or no delivery, any certificate
    VERIFIED = "verified"  # STARTTLS with a certificate of a known authority for one of `names` (RFC 8461)
    DANE = "dane"  # STARTTLS with a certificate that one of `tlsa` matches (RFC 7672)


class Tlsa(msgspec.Struct, frozen=True):
    """A usable TLSA record (RFC 6698 section 2.1)."""

    usage: int
    selector: int
    matching_type: int
    data: bytes


class TlsPolicy(msgspec.Struct, frozen=True):
    """The policy for one host."""

    mode: Mode = Mode.OPPORTUNISTIC
    names: tuple[str, ...] = ()
    tlsa: tuple[Tlsa, ...] = ()
    reason: str = ""  # where a strict policy comes from, for logs: `MTA-STS of example.org`


OPPORTUNISTIC = TlsPolicy()
