"""Tag lists, `v=DKIM1; k=rsa; p=…`, and the record of DKIM, which has this format (RFC 6376)."""

import base64
import re
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


def with_item(text: str, name: str, item: str) -> str:
    """A list in which the tag, a list with commas, has this item; all else is as it was."""
    specs = text.rstrip(_BLANKS + ";").split(";")
    for at, spec in enumerate(specs):
        tag, _, value = spec.partition("=")
        if tag.strip(_BLANKS) == name:
            items = [each.strip(_BLANKS) for each in value.split(",") if each.strip(_BLANKS)]
            # Behind `!` is the largest size that is wanted (RFC 7489 section 6.2).
            if item.lower() in (each.partition("!")[0].lower() for each in items):
                return text
            specs[at] = f"{tag}={','.join([*items, item])}"
            return ";".join(specs)
    return f"{';'.join(specs)}; {name}={item}"


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
