"""The DKIM public key record: a TXT record in the zone of the signing domain (RFC 6376 section 3.6, RFC 8463)."""

import base64
from typing import Final

TYPE: Final = "TXT"
# A name whose key is in another zone is an alias of its name there.
ALIAS_TYPE: Final = "CNAME"
# A record consists of strings, and each has one octet for its length (RFC 1035 section 3.3.14).
STRING_OCTETS: Final = 255


def name(selector: str, domain: str) -> str:
    """The name of the record, without the dot that ends it in a zone file."""
    return f"{selector}._domainkey.{domain}"


def value(public_key: bytes, *, key_type: str = "rsa") -> str:
    """What the record says, as one text. An RSA key is a SubjectPublicKeyInfo in DER, an Ed25519 key its 32 octets."""
    return f"v=DKIM1; k={key_type}; p={base64.b64encode(public_key).decode()}"


def strings(text: str) -> list[str]:
    """The same text in strings that a zone can hold; receivers join them without anything between."""
    return [text[at : at + STRING_OCTETS] for at in range(0, len(text), STRING_OCTETS)]


def zone_line(record_name: str, text: str) -> str:
    """The record as a line of a zone file (RFC 1035 section 5.1)."""
    quoted = " ".join(f'"{string}"' for string in strings(text))
    return f"{record_name}. IN {TYPE} ( {quoted} )"
