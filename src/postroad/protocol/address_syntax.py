"""The grammar of an address: regular expressions shared by the parser and the published schema.

An address is the `dot-atom "@" domain` of RFC 5322 section 3.4.1 without quoted local parts, comments, routes and
domain literals; its sizes are those of RFC 5321 section 4.5.3.1. `SCHEMA_PATTERN` says the same in the common subset of
ECMA-262 and Python, for JSON Schema: whatever it matches (within `MAX_CHARACTERS`) is accepted by `address.parse`. For
ASCII the reverse holds too, except names in Punycode. Of non-ASCII addresses it covers only a safe subset, because a
regular expression cannot express IDNA: letters of common scripts, in short labels.
"""

import re
from typing import Final

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
