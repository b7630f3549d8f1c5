"""Tag lists, `v=DKIM1; k=rsa; p=…`, and the records that have this format: DKIM (RFC 6376) and DMARC (RFC 9989)."""

import base64
import re
from collections.abc import Iterator
from typing import Final

# A record of DNS cannot be longer; far more than any of these needs.
MAX_CHARACTERS: Final = 65_535
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_BLANKS: Final = " \t\r\n"


def parse(text: str) -> dict[str, str] | None:
    """The values by the names of their tags, in the order of the text; a semicolon at the end is fine."""
    if len(text) > MAX_CHARACTERS:
        return None
    specs = text.split(";")
    if not specs[-1].strip(_BLANKS):
        specs.pop()
    tags: dict[str, str] = {}
    for spec in specs:
        name, equals, value = spec.partition("=")
        name = name.strip(_BLANKS)
        if not equals or not _NAME.fullmatch(name) or name in tags:
            return None
        tags[name] = value.strip(_BLANKS)
    return tags or None


TYPE: Final = "TXT"
# A name whose key is in another zone is an alias of its name there.
ALIAS_TYPE: Final = "CNAME"
# A record consists of strings, and each has one octet for its length (RFC 1035 section 3.3.14).
STRING_OCTETS: Final = 255


def dkim_name(selector: str, domain: str) -> str:
    """The name of the record, without the dot that ends it in a zone file."""
    return f"{selector}._domainkey.{domain}"


def dkim_value(public_key: bytes, *, key_type: str = "rsa") -> str:
    """What the record says, as one text. An RSA key is a SubjectPublicKeyInfo in DER, an Ed25519 key its 32 octets."""
    return f"v=DKIM1; k={key_type}; p={base64.b64encode(public_key).decode()}"


def txt_strings(text: str) -> list[str]:
    """The same text in strings that a zone can hold; receivers join them without anything between."""
    return [text[at : at + STRING_OCTETS] for at in range(0, len(text), STRING_OCTETS)]


def zone_line(record_name: str, text: str) -> str:
    """The record as a line of a zone file (RFC 1035 section 5.1); a text that was found in DNS may have quotes."""
    strings = (string.replace("\\", "\\\\").replace('"', '\\"') for string in txt_strings(text))
    quoted = " ".join(f'"{string}"' for string in strings)
    return f"{record_name}. IN {TYPE} ( {quoted} )"


# The DMARC record: a domain's policy for mail that fails authentication (RFC 9989).
#
# Receivers query `_dmarc.` of the domain of the From field, and then of its parent domains. Exactly one record counts;
# two records count as none. Unknown tags are ignored, and so are those of the predecessor, RFC 7489, such as `pct`.

DMARC_POLICIES: Final = ("none", "quarantine", "reject")
# Bounds the queries for names with many labels, like those of receivers.
MAX_DMARC_NAMES: Final = 8

_DMARC_VERSION: Final = re.compile(r"v[ \t]*=[ \t]*DMARC1[ \t]*(;|\Z)")


class DmarcError(ValueError):
    """A record that receivers ignore; the message says why."""


def first_dmarc(domain: str) -> str:
    """The record to begin with: it changes nothing about the domain's mail, and requests reports about it.

    Every domain with mailboxes has this one (RFC 5321 section 4.5.1).
    """
    return f"v=DMARC1; p=none; rua=mailto:postmaster@{domain}"


def dmarc_name(domain: str) -> str:
    return f"_dmarc.{domain}"


def dmarc_names(domain: str) -> Iterator[str]:
    """Where a record that holds for a domain may stand: its own, then those above it, down to two labels."""
    labels = domain.split(".")
    places = [".".join(labels[at:]) for at in range(max(1, len(labels) - 1))]
    # The domain itself, and the highest of the others: an organization's domain is near the top.
    for place in [places[0], *places[1:][-(MAX_DMARC_NAMES - 1) :]]:
        yield dmarc_name(place)


def is_dmarc(text: str) -> bool:
    """Whether a TXT record means to be one."""
    return _DMARC_VERSION.match(text) is not None


def dmarc_policy(text: str) -> str:
    """What a record asks for, one of `POLICIES`. Raises DmarcError."""
    tags = parse(text)
    if tags is None:
        raise DmarcError("it is not a list of tags, such as v=DMARC1; p=none")
    if next(iter(tags)) != "v":
        raise DmarcError("v=DMARC1 must come first")
    if "p" not in tags:
        raise DmarcError("p= is missing")
    wanted = tags["p"].lower()
    if wanted not in DMARC_POLICIES:
        raise DmarcError("p= must be none, quarantine or reject")
    return wanted
