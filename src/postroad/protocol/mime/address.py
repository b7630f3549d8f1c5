"""The one strict parser for email addresses, for every listener.

Accepted: `user@example.com`, `Name <user@example.com>` and `"Name, quoted" <user@example.com>` (RFC 5322 section
3.4), with names in any script, internationalized domains (written as A-labels, RFC 5891) and non-ASCII local parts
(RFC 6531, in Unicode normal form C). One address per string. Refused, because no honest sender needs them and each has
misled mail programs before: comments, groups, routes, quoted local parts, domain literals, encoded words, control
characters, line breaks, and bidirectional control characters.
"""

import functools
import re
import unicodedata
from typing import Final

import idna
import msgspec

# The grammar of an address: regular expressions shared by the parser and the published schema.
#
# An address is the `dot-atom "@" domain` of RFC 5322 section 3.4.1 without quoted local parts, comments, routes and
# domain literals; its sizes are those of RFC 5321 section 4.5.3.1. `SCHEMA_PATTERN` says the same in the common subset
# of ECMA-262 and Python, for JSON Schema: whatever it matches (within `MAX_CHARACTERS`) is accepted by `address.parse`.
# For ASCII the reverse holds too, except names in Punycode. Of non-ASCII addresses it covers only a safe subset,
# because a regular expression cannot express IDNA: letters of common scripts, in short labels.

# Two full names of escaped characters, an address and some spaces fit; everything longer is nonsense.
MAX_CHARACTERS: Final = 1000
MAX_NAME_CHARACTERS: Final = 255
MAX_LOCAL_OCTETS: Final = 64  # RFC 5321 section 4.5.3.1.1
MAX_DOMAIN_OCTETS: Final = 253  # RFC 1035 section 2.3.4, without the length octets of the ends
MAX_LABEL_OCTETS: Final = 63  # RFC 1035 section 2.3.4
MAX_ADDRESS_OCTETS: Final = 254  # RFC 5321 section 4.5.3.1.3: 256 with the angle brackets

# Control characters, Unicode's own line breaks, and the marks that turn the direction of what a reader sees.
UNSEEN: Final = r"\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069"
ATEXT: Final = r"A-Za-z0-9!#$%&'*+/=?^_`{|}~\-"
_ALPHANUMERIC: Final = "A-Za-z0-9"
_LABEL: Final = rf"[{_ALPHANUMERIC}](?:[{_ALPHANUMERIC}\-]{{0,61}}[{_ALPHANUMERIC}])?"
# RFC 3696 section 2: a top-level domain is never all digits; that it starts with a letter keeps IPv4 addresses out.
_TOP_LABEL: Final = rf"[A-Za-z](?:[{_ALPHANUMERIC}\-]{{0,61}}[{_ALPHANUMERIC}])?"
DOT_ATOM: Final = rf"[{ATEXT}]+(?:\.[{ATEXT}]+)*"
DOMAIN: Final = rf"(?:{_LABEL}\.)+{_TOP_LABEL}"

SPECIALS: Final = r'"(),:;<>@\[\\\]'  # RFC 5322 section 3.2.3, without the dot, which people write in names

# Letters that are their own normal form, run from left to right and are PVALID in IDNA 2008: Latin-1, Greek, Cyrillic,
# Hiragana, Katakana, Han, Hangul. Small letters only, so that no mapping can change a length.
_LETTERS: Final = (
    r"\u00df-\u00f6\u00f8-\u00ff\u03b1-\u03c9\u0430-\u045f\u3041-\u3096\u30a1-\u30fa\u4e00-\u9fa5\uac00-\ud7a3"
)
# Three octets a letter: 21 of them are the 63 that a local part may have.
_WIDE_LOCAL: Final = rf"(?![^@]{{22}})[{ATEXT}{_LETTERS}]+(?:\.[{ATEXT}{_LETTERS}]+)*"
# Punycode spends about four octets on such a letter: 14 of them, or 4 among 36 others, fit into the 63 of a label.
_WIDE_LABEL: Final = (
    rf"(?:[{_LETTERS}]{{1,14}}"
    rf"|[{_ALPHANUMERIC}]{{0,12}}[{_LETTERS}](?:[{_ALPHANUMERIC}]{{0,4}}[{_LETTERS}]){{0,3}}[{_ALPHANUMERIC}]{{0,12}})"
)
_NOT_PUNYCODE: Final = "(?![Xx][Nn]--)"
_PLAIN_LABEL: Final = _NOT_PUNYCODE + _LABEL
_PLAIN_TOP_LABEL: Final = _NOT_PUNYCODE + _TOP_LABEL
_ASCII_ADDRESS: Final = rf"(?![^>]{{255}})(?![^@]{{65}}){DOT_ATOM}@(?:{_PLAIN_LABEL}\.)+{_PLAIN_TOP_LABEL}"
# IDNA 2008 keeps labels with hyphens in the third and fourth place to itself (RFC 5891 section 4.2.3.1).
_UNTAGGED: Final = "(?![^.]{2}--)"
# Two labels of 63 and a last one of 59, with a local part of 63, stay within the 254 octets of an address.
_WIDE_DOMAIN: Final = (
    rf"(?:(?:{_WIDE_LABEL}|{_UNTAGGED}{_LABEL})\.){{1,2}}"
    rf"(?:{_WIDE_LABEL}|{_UNTAGGED}[A-Za-z](?:[{_ALPHANUMERIC}\-]{{0,57}}[{_ALPHANUMERIC}])?)"
)
_WIDE_ADDRESS: Final = rf"{_WIDE_LOCAL}@{_WIDE_DOMAIN}"
_ADDRESS: Final = rf"(?:{_ASCII_ADDRESS}|{_WIDE_ADDRESS})"
_WORD: Final = rf"[^ {SPECIALS}{UNSEEN}]+"
_BARE_NAME: Final = rf"(?![^<]{{255,}}[^ <]){_WORD}(?: +{_WORD})*"
_QUOTED_NAME: Final = rf'"(?:[^"\\{UNSEEN}]|\\[ -~]){{0,255}}"'

# No `=?` anywhere: it would begin an encoded word (RFC 2047), which a reader might decode into something else.
SCHEMA_PATTERN: Final = rf"^(?!.*=\?) *(?:{_ADDRESS}|(?:(?:{_BARE_NAME}|{_QUOTED_NAME}) *)?<{_ADDRESS}>) *$"
# The same for a domain alone, by `address.parse_domain`.
DOMAIN_SCHEMA_PATTERN: Final = rf"^ *(?![^ ]{{254}})(?:(?:{_PLAIN_LABEL}\.)+{_PLAIN_TOP_LABEL}|{_WIDE_DOMAIN}) *$"

ASCII_ADDRESS: Final = re.compile(rf"({DOT_ATOM})@({DOMAIN})")
ASCII_DOMAIN: Final = re.compile(DOMAIN)
ASCII_LABEL: Final = re.compile(_LABEL)
ATOM_CHARACTER: Final = re.compile(rf"[{ATEXT}]")
FORBIDDEN_CHARACTER: Final = re.compile(rf"[{UNSEEN}\ud800-\udfff]")
QUOTED_NAME: Final = re.compile(r'"((?:[^"\\]|\\[ -~])*)" *')
QUOTED_PAIR: Final = re.compile(r"\\(.)")
NAME_SPECIAL: Final = re.compile(rf"[{SPECIALS}]")
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
    # What goes on the envelope and between the angle brackets.
    address: str
    # The same for two writings of one address: addresses are compared without regard to case.
    key: str

    @property
    def written_address(self) -> str:
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
        return make_mailbox(None, *plain, text)
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
    if len(text) > MAX_ADDRESS_OCTETS:
        return None
    match = ASCII_ADDRESS.fullmatch(text)
    if match is None:
        return None
    local, domain = match.groups()
    domain = domain.lower()
    if len(local) > MAX_LOCAL_OCTETS or "=?" in local or "xn--" in domain:
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
        return make_mailbox(None, local, domain, text)
    before, bracket, after = trimmed[:-1].rpartition("<")
    if not bracket:
        raise AddressError("there is a '>' without a '<'")
    local, domain = _local_and_domain(after)
    return make_mailbox(_display_name(before), local, domain, text)


def make_mailbox(display_name: str | None, local: str, domain: str, written: str) -> Mailbox:
    text = f"{local}@{domain}"
    return Mailbox(display_name, local, domain, written, text, text.lower())


def _refuse_forbidden_characters(text: str) -> None:
    if len(text) > MAX_CHARACTERS:
        raise AddressError(f"it is longer than {MAX_CHARACTERS} characters")
    forbidden = FORBIDDEN_CHARACTER.search(text)
    if forbidden is not None:
        raise AddressError(f"it contains the forbidden character U+{ord(forbidden[0]):04X}")
    if "=?" in text:
        raise AddressError("'=?' begins an encoded word; write the characters themselves")


def _display_name(before: str) -> str | None:
    """The name before the `<`: a quoted string, or words without special characters."""
    name = before.strip()
    if name.startswith('"'):
        quoted = QUOTED_NAME.fullmatch(name)
        if quoted is None:
            raise AddressError('a name in double quotes needs \\ before each " and \\ in it, and nothing after it')
        name = QUOTED_PAIR.sub(r"\1", quoted[1]).strip()
        if "=?" in name:
            raise AddressError("'=?' begins an encoded word; write the characters themselves")
    else:
        special = NAME_SPECIAL.search(name)
        if special is not None:
            raise AddressError(f"a name that contains {special[0]!r} must be in double quotes")
    if len(name) > MAX_NAME_CHARACTERS:
        raise AddressError(f"the name is longer than {MAX_NAME_CHARACTERS} characters")
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
    if len(local.encode()) + 1 + len(domain) > MAX_ADDRESS_OCTETS:
        raise AddressError(f"it is longer than {MAX_ADDRESS_OCTETS} octets")
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
    if len(local.encode()) > MAX_LOCAL_OCTETS:
        raise AddressError(f"more than {MAX_LOCAL_OCTETS} octets precede the '@'")
    return local


def _allowed_in_local(character: str) -> bool:
    if character.isascii():
        return character == "." or ATOM_CHARACTER.fullmatch(character) is not None
    return unicodedata.category(character)[0] in _LOCAL_CATEGORIES


def _domain(text: str) -> str:
    if not text:
        raise AddressError("it is empty")
    if text.startswith("["):
        raise AddressError("an address in brackets is not accepted as a domain")
    domain = text.lower() if text.isascii() and "xn--" not in text.lower() else _to_a_labels(text)
    if len(domain) > MAX_DOMAIN_OCTETS:
        raise AddressError(f"the domain is longer than {MAX_DOMAIN_OCTETS} octets")
    if ASCII_DOMAIN.fullmatch(domain) is None:
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
        if len(label) > MAX_LABEL_OCTETS:
            return f"a label of the domain is longer than {MAX_LABEL_OCTETS} octets"
        if ASCII_LABEL.fullmatch(label) is None:
            return f"{_show(label)} is not a valid domain label"
    return f"there is no top-level domain {_show(labels[-1])}"
