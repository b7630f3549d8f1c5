"""The one strict parser for email addresses, for every listener.

Accepted: `user@example.com`, `Name <user@example.com>` and `"Name, quoted" <user@example.com>` (RFC 5322 section
3.4), with names in any script, internationalized domains (written as A-labels, RFC 5891) and non-ASCII local parts
(RFC 6531, in Unicode normal form C). One address per string. Refused, because no honest sender needs them and each has
misled mail programs before: comments, groups, routes, quoted local parts, domain literals, encoded words, control
characters, line breaks, and bidirectional control characters.
"""

import functools
import unicodedata
from typing import Final

import idna
import msgspec

from postroad.protocol import address_syntax

SCHEMA_PATTERN: Final = address_syntax.SCHEMA_PATTERN
MAX_CHARACTERS: Final = address_syntax.MAX_CHARACTERS
# Letters, marks and numbers. The symbols and punctuation of Unicode hold look-alikes of `@`, of dots and of brackets.
_LOCAL_CATEGORIES: Final = frozenset("LMN")
_SHOWN_CHARACTERS: Final = 64
# IDNA's reasons quote the label, which may be all of the text.
_REASON_CHARACTERS: Final = 160
# A message names its sender and recipients several times, and the next one often has the same sender. The cache
# takes 4 MB at most.
_CACHE_SIZE: Final = 1024


class AddressError(ValueError):
    """The text is not one address. The message quotes it and says what is wrong; it is safe to show."""


class Mailbox(msgspec.Struct, frozen=True):
    """An address, perhaps with a name. `domain` is in lower case and in A-labels; `written` is what the caller gave."""

    display_name: str | None
    local: str
    domain: str
    written: str

    @property
    def address(self) -> str:
        """What goes on the envelope and between the angle brackets."""
        return f"{self.local}@{self.domain}"

    @property
    def key(self) -> str:
        """The same for two writings of one address: addresses are compared without regard to case."""
        return f"{self.local}@{self.domain}".lower()

    @property
    def written_address(self) -> str:
        """The address alone, as the caller wrote it."""
        return self.written.strip(" ").rpartition("<")[2].removesuffix(">")

    @property
    def needs_smtputf8(self) -> bool:
        """Whether only a host that offers SMTPUTF8 (RFC 6531) can take this address."""
        return not self.local.isascii()


@functools.lru_cache(maxsize=_CACHE_SIZE)
def parse(text: str) -> Mailbox:
    """The one address in the text, or an `AddressError`."""
    plain = _parse_plain(text)
    if plain is not None:
        return Mailbox(None, plain[0], plain[1], text)
    try:
        return _parse_slowly(text)
    except AddressError as error:
        raise AddressError(f"{_show(text)} is not an email address: {error}") from None


def parse_domain(text: str) -> str:
    """A domain name alone, in lower case and A-labels, by the rules for the domain of an address."""
    try:
        _refuse_forbidden_characters(text)
        return _domain(text.strip(" "))
    except AddressError as error:
        raise AddressError(f"{_show(text)} is not a domain name: {error}") from None


def key_of(text: str) -> str:
    """The key of an address from outside: an invalid one is compared as it is."""
    try:
        return parse(text).key
    except AddressError:
        return text.lower()


def _parse_plain(text: str) -> tuple[str, str] | None:
    """Local part and domain of an ordinary ASCII address: nearly all mail takes this way, in one expression."""
    if len(text) > address_syntax.MAX_ADDRESS_OCTETS:
        return None
    match = address_syntax.ASCII_ADDRESS.fullmatch(text)
    if match is None:
        return None
    local, domain = match.groups()
    domain = domain.lower()
    if len(local) > address_syntax.MAX_LOCAL_OCTETS or "=?" in local or "xn--" in domain:
        return None
    return local, domain


def _show(text: str) -> str:
    """The text as a message may carry it: cut, and with everything unprintable escaped."""
    if len(text) > _SHOWN_CHARACTERS:
        return repr(text[:_SHOWN_CHARACTERS] + "…")
    return repr(text)


def _parse_slowly(text: str) -> Mailbox:
    _refuse_forbidden_characters(text)
    trimmed = text.strip(" ")
    if not trimmed:
        raise AddressError("it is empty")
    if not trimmed.endswith(">"):
        if "<" in trimmed:
            raise AddressError("after a name, the address must come last, between '<' and '>'")
        local, domain = _local_and_domain(trimmed)
        return Mailbox(None, local, domain, text)
    before, bracket, after = trimmed[:-1].rpartition("<")
    if not bracket:
        raise AddressError("there is a '>' without a '<'")
    local, domain = _local_and_domain(after)
    return Mailbox(_display_name(before), local, domain, text)


def _refuse_forbidden_characters(text: str) -> None:
    if len(text) > MAX_CHARACTERS:
        raise AddressError(f"it is longer than {MAX_CHARACTERS} characters")
    forbidden = address_syntax.FORBIDDEN_CHARACTER.search(text)
    if forbidden is not None:
        raise AddressError(f"it contains the forbidden character U+{ord(forbidden[0]):04X}")
    if "=?" in text:
        raise AddressError("'=?' begins an encoded word; write the characters themselves")


def _display_name(before: str) -> str | None:
    """The name before the `<`: a quoted string, or words without special characters."""
    name = before.strip()
    if name.startswith('"'):
        quoted = address_syntax.QUOTED_NAME.fullmatch(name)
        if quoted is None:
            raise AddressError('a name in double quotes needs \\ before each " and \\ in it, and nothing after it')
        name = address_syntax.QUOTED_PAIR.sub(r"\1", quoted[1]).strip()
        if "=?" in name:
            raise AddressError("'=?' begins an encoded word; write the characters themselves")
    else:
        special = address_syntax.NAME_SPECIAL.search(name)
        if special is not None:
            raise AddressError(f"a name that contains {special[0]!r} must be in double quotes")
    if len(name) > address_syntax.MAX_NAME_CHARACTERS:
        raise AddressError(f"the name is longer than {address_syntax.MAX_NAME_CHARACTERS} characters")
    return name or None


def _local_and_domain(text: str) -> tuple[str, str]:
    plain = _parse_plain(text)
    if plain is not None:
        return plain
    if "," in text or ";" in text:
        raise AddressError("only one address is allowed here")
    if "(" in text or ")" in text:
        raise AddressError("comments in parentheses are not accepted")
    if text.startswith("@"):
        raise AddressError("nothing precedes the '@'")
    local, at, domain = text.rpartition("@")
    if not at:
        raise AddressError("there is no '@'")
    if not domain:
        raise AddressError("nothing follows the '@'")
    if '"' in local:
        raise AddressError("quoted local parts are not accepted")
    if "@" in local:
        raise AddressError("there is more than one '@'")
    local, domain = _local(local), _domain(domain)
    if len(local.encode()) + 1 + len(domain) > address_syntax.MAX_ADDRESS_OCTETS:
        raise AddressError(f"it is longer than {address_syntax.MAX_ADDRESS_OCTETS} octets")
    return local, domain


def _local(text: str) -> str:
    """The local part in normal form C, after RFC 6531 section 3.3's extension of `atext`, narrowed."""
    local = unicodedata.normalize("NFC", text)
    if local.startswith(".") or local.endswith(".") or ".." in local:
        raise AddressError("the part before the '@' begins or ends with a dot, or has two dots in a row")
    for character in local:
        if not _allowed_in_local(character):
            raise AddressError(f"{character!r} is not allowed before the '@'")
    if any(unicodedata.combining(atom[0]) for atom in local.split(".")):
        raise AddressError("the part before the '@' has a combining mark without a base letter")
    if len(local.encode()) > address_syntax.MAX_LOCAL_OCTETS:
        raise AddressError(f"more than {address_syntax.MAX_LOCAL_OCTETS} octets precede the '@'")
    return local


def _allowed_in_local(character: str) -> bool:
    if character.isascii():
        return character == "." or address_syntax.ATOM_CHARACTER.fullmatch(character) is not None
    return unicodedata.category(character)[0] in _LOCAL_CATEGORIES


def _domain(text: str) -> str:
    if not text:
        raise AddressError("it is empty")
    if text.startswith("["):
        raise AddressError("an address in brackets is not accepted as a domain")
    domain = text.lower() if text.isascii() and "xn--" not in text.lower() else _to_a_labels(text)
    if len(domain) > address_syntax.MAX_DOMAIN_OCTETS:
        raise AddressError(f"the domain is longer than {address_syntax.MAX_DOMAIN_OCTETS} octets")
    if address_syntax.ASCII_DOMAIN.fullmatch(domain) is None:
        raise AddressError(_what_is_wrong_with_domain(domain))
    return domain


def _to_a_labels(text: str) -> str:
    """The domain by UTS 46 and IDNA 2008; labels that are Punycode already are checked by decoding them."""
    try:
        return idna.encode(text, uts46=True, std3_rules=True).decode("ascii")
    except idna.IDNAError as error:
        reason = str(error)
        shown = reason if len(reason) <= _REASON_CHARACTERS else reason[:_REASON_CHARACTERS] + "…"
        raise AddressError(f"the domain is not a valid internationalized domain ({shown})") from None


def _what_is_wrong_with_domain(domain: str) -> str:
    if "/" in domain:
        return "a '/' is not allowed in the domain; give the name alone, as in example.com"
    labels = domain.split(".")
    if "" in labels:
        return "the domain begins or ends with a dot, or has two dots in a row"
    if len(labels) == 1:
        return "the domain has no dot"
    for label in labels:
        if len(label) > address_syntax.MAX_LABEL_OCTETS:
            return f"a label of the domain is longer than {address_syntax.MAX_LABEL_OCTETS} octets"
        if address_syntax.ASCII_LABEL.fullmatch(label) is None:
            return f"{_show(label)} is not a valid domain label"
    return f"there is no top-level domain {_show(labels[-1])}"
